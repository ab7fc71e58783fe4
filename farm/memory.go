package farm

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// memories are one machine's ranges of memory by name: an nvram.Folder, or, for an instance that
// does not outlive its process, a shelf of a Volatile.
type memories interface {
	Map(name string, size int64) (*nvram.Memory, error)
	Names() ([]string, error)
	// MemorySize returns the size of the memory called name.
	MemorySize(name string) (int64, error)
	Remove(name string) error
	// Detach is like Remove, for memory that may still be in use until release is called.
	Detach(name string) (release func() error, err error)
	Close() error
}

var _ memories = (*shelf)(nil)

// Volatile holds the memories and the configuration of an instance without a folder.
type Volatile struct {
	store   cluster.MemoryStore
	shelves map[int]*shelf
}

// NewVolatile returns an empty Volatile.
func NewVolatile() *Volatile { return &Volatile{shelves: make(map[int]*shelf)} }

// shelf returns a machine's shelf for a new life of the machine, with no memory mapped.
func (v *Volatile) shelf(machine int) *shelf {
	if v.shelves[machine] == nil {
		v.shelves[machine] = &shelf{m: make(map[string]*nvram.Memory), mapped: make(map[string]bool)}
	}
	clear(v.shelves[machine].mapped)
	return v.shelves[machine]
}

// machines returns the machines that have a shelf.
func (v *Volatile) machines() (machines []rdma.MachineID) {
	for i := range v.shelves { // any order: callers sort
		machines = append(machines, rdma.MachineID(i))
	}
	return machines
}

// Clone returns a copy of the present state, which is the state that a crash of all machines at this
// moment would leave. Nothing may change during the call.
func (v *Volatile) Clone() *Volatile {
	c := NewVolatile()
	v.store.CopyTo(&c.store)
	for i, s := range v.shelves { // any order: it copies
		s.mu.Lock()
		for name, m := range s.m { // any order
			c.shelf(i).m[name] = cloneMemory(m)
		}
		s.mu.Unlock()
	}
	return c
}

// cloneMemory copies a memory. It skips parts that are zero, so that they take no storage in the copy
// either.
func cloneMemory(m *nvram.Memory) *nvram.Memory {
	c := nvram.NewMemory(int64(m.Size()))
	zero := make([]byte, 64<<10)
	b := make([]byte, len(zero))
	for off := uint64(0); off < m.Size(); off += uint64(len(b)) {
		part := b[:min(uint64(len(b)), m.Size()-off)]
		m.CopyOut(part, off)
		if !bytes.Equal(part, zero[:len(part)]) {
			c.CopyIn(off, part)
		}
	}
	return c
}

// A shelf holds one machine's memories by name. It outlives the machine's lives.
type shelf struct {
	mu     lockrank.Mutex[lockrank.Leaf]
	m      map[string]*nvram.Memory
	mapped map[string]bool // names that are mapped in this life of the machine
}

// Map returns the memory called name, which it makes if there is none. Like a folder, it refuses to
// map a name twice in one life.
func (s *shelf) Map(name string, size int64) (*nvram.Memory, error) {
	if err := nvram.CheckName(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mapped[name] {
		return nil, fmt.Errorf("farm: %w: %s is mapped already", nvram.ErrName, name)
	}
	if s.m[name] == nil {
		s.m[name] = nvram.NewMemory(size)
	}
	if got := int64(s.m[name].Size()); got != size {
		return nil, fmt.Errorf("farm: %s has %d bytes, not %d", name, got, size)
	}
	s.mapped[name] = true
	return s.m[name], nil
}

func (s *shelf) Names() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.m)), nil
}

func (s *shelf) MemorySize(name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.m[name]
	if m == nil {
		return 0, fmt.Errorf("farm: there is no %s", name)
	}
	return int64(m.Size()), nil
}

func (s *shelf) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, name)
	delete(s.mapped, name)
	return nil
}

func (s *shelf) Detach(name string) (release func() error, err error) {
	return func() error { return nil }, s.Remove(name)
}

func (s *shelf) Close() error { return nil }
