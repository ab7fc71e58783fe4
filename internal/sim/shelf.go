package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/nvram"
)

// A Shelf is a machine's non-volatile memory: ranges by name, as nvram.Folder
// has.
type Shelf struct{ memory map[string]*nvram.Memory }

func newShelf() *Shelf { return &Shelf{memory: make(map[string]*nvram.Memory)} }

// Map returns the memory of that name, and makes it if there is none.
func (s *Shelf) Map(name string, size int64) (*nvram.Memory, error) {
	if err := nvram.CheckName(name); err != nil {
		return nil, err
	}
	m := s.memory[name]
	if m == nil {
		m = nvram.NewMemory(size)
		s.memory[name] = m
	}
	if got := int64(m.Size()); got != size {
		return nil, fmt.Errorf("sim: %s has %d bytes, not %d", name, got, size)
	}
	return m, nil
}

// Names returns the names in use, in order.
func (s *Shelf) Names() ([]string, error) { return slices.Sorted(maps.Keys(s.memory)), nil }

// Remove forgets a name: nobody may use the memory any more.
func (s *Shelf) Remove(name string) error {
	release, _ := s.Detach(name) // never fails
	return release()
}

// Detach forgets a name; release has the memory fail whoever uses it after that, as
// memory does that is mapped no longer.
func (s *Shelf) Detach(name string) (release func() error, err error) {
	m := s.memory[name]
	delete(s.memory, name)
	return func() error {
		if m != nil {
			m.Drop()
		}
		return nil
	}, nil
}

// Close does nothing: what is on the shelf stays there.
func (s *Shelf) Close() error { return nil }

// clone returns a copy of everything as it is now.
func (s *Shelf) clone() *Shelf {
	c := newShelf()
	for name, m := range s.memory {
		c.memory[name] = cloneMemory(m)
	}
	return c
}

// cloneMemory touches no page of the copy whose bytes are zero.
func cloneMemory(m *nvram.Memory) *nvram.Memory {
	c := nvram.NewMemory(int64(m.Size()))
	var zero, b [4096]byte
	for off := uint64(0); off < m.Size(); off += uint64(len(b)) {
		part := b[:min(uint64(len(b)), m.Size()-off)]
		if m.CopyOut(part, off); !bytes.Equal(part, zero[:len(part)]) {
			c.CopyIn(off, part)
		}
	}
	return c
}
