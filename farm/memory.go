package farm

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
)

// memories are one machine's ranges of memory by name: an nvram.Folder, or, for
// an instance that does not outlive its process, a shelf of a Volatile.
type memories interface {
	Map(name string, size int64) (*nvram.Memory, error)
	Names() ([]string, error)
	Remove(name string) error
	Close() error
}

var _ memories = (*shelf)(nil)

// Volatile keeps what an instance without a folder would otherwise keep in one.
type Volatile struct {
	store   cluster.MemoryStore
	shelves map[int]*shelf
}

// NewVolatile returns an empty one.
func NewVolatile() *Volatile { return &Volatile{shelves: make(map[int]*shelf)} }

func (v *Volatile) shelf(machine int) *shelf {
	if v.shelves[machine] == nil {
		v.shelves[machine] = &shelf{m: make(map[string]*nvram.Memory)}
	}
	return v.shelves[machine]
}

type shelf struct {
	mu sync.Mutex
	m  map[string]*nvram.Memory
}

func (s *shelf) Map(name string, size int64) (*nvram.Memory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[name] == nil {
		s.m[name] = nvram.NewMemory(size)
	}
	if got := int64(s.m[name].Size()); got != size {
		return nil, fmt.Errorf("farm: %s has %d bytes, not %d", name, got, size)
	}
	return s.m[name], nil
}

func (s *shelf) Names() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.m)), nil
}

func (s *shelf) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, name)
	return nil
}

func (s *shelf) Close() error { return nil }
