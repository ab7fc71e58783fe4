package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/nvram"
)

// A Shelf is a machine's non-volatile memory: ranges by name, as in an nvram.Folder.
type Shelf struct {
	memory map[string]stored
	mapped map[string]bool // the names that the process has mapped
	disk   *disk
}

// stored is one range of memory, and its pages of the disk.
type stored struct {
	*nvram.Memory
	pages *pages
}

func newShelf() *Shelf {
	return &Shelf{memory: make(map[string]stored), mapped: make(map[string]bool), disk: new(disk)}
}

// Map returns the memory of that name, and creates it, without storage (see
// nvram.Memory.Reserve), if there is none. Like a folder, it maps a name only once.
func (s *Shelf) Map(name string, size int64) (*nvram.Memory, error) {
	if err := nvram.CheckName(name); err != nil {
		return nil, err
	}
	if s.mapped[name] {
		return nil, fmt.Errorf("sim: %w: %s is mapped already", nvram.ErrName, name)
	}
	m, found := s.memory[name]
	if !found {
		m = s.add(name, size)
	}
	if got := int64(m.Size()); got != size {
		return nil, fmt.Errorf("sim: %s has %d bytes, not %d", name, got, size)
	}
	s.mapped[name] = true
	return m.Memory, nil
}

func (s *Shelf) add(name string, size int64) stored {
	m := stored{nvram.NewMemory(size), newPages(s.disk, size)}
	m.Keep(m.pages)
	s.memory[name] = m
	return m
}

// Names returns the names in use, in order.
func (s *Shelf) Names() ([]string, error) { return slices.Sorted(maps.Keys(s.memory)), nil }

// MemorySize returns the size of the memory of that name.
func (s *Shelf) MemorySize(name string) (int64, error) {
	m, found := s.memory[name]
	if !found {
		return 0, fmt.Errorf("sim: there is no %s", name)
	}
	return int64(m.Size()), nil
}

// Remove removes a name, whose memory must not be used any more.
func (s *Shelf) Remove(name string) error {
	release, _ := s.Detach(name) // never fails
	return release()
}

// Detach removes a name. After release every access to the memory fails, as after unmapping.
func (s *Shelf) Detach(name string) (release func() error, err error) {
	m, found := s.memory[name]
	delete(s.memory, name)
	delete(s.mapped, name)
	return func() error {
		if found {
			m.pages.Discard(0, m.Size())
			m.Drop()
		}
		return nil
	}, nil
}

// Close unmaps all memory. The shelf keeps its content.
func (s *Shelf) Close() error {
	clear(s.mapped)
	return nil
}

// clone returns a copy of all memory in its present state, with nothing mapped.
func (s *Shelf) clone() *Shelf {
	c := newShelf()
	*c.disk = *s.disk
	for name, m := range s.memory {
		c.add(name, int64(m.Size())).copyFrom(name, m)
	}
	return c
}

// copyFrom copies a range into a new one, without touching pages of zeros. A page that was
// written without having storage is a violation: on a real machine without room, the write
// would have killed the process.
func (c stored) copyFrom(name string, m stored) {
	copy(c.pages.has, m.pages.has)
	var zero, b [pageBytes]byte
	for off := uint64(0); off < m.Size(); off += pageBytes {
		part := b[:min(pageBytes, m.Size()-off)]
		if m.CopyOut(part, off); bytes.Equal(part, zero[:len(part)]) {
			continue
		}
		if !m.pages.has[off/pageBytes] {
			invariant.Violated("stored to a page of "+name+" without storage", off, nil)
		}
		c.CopyIn(off, part)
	}
}
