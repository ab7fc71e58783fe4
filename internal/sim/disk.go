package sim

import (
	"fmt"

	"github.com/farmsql/farmsql/nvram"
)

// pageBytes is the unit of storage.
const pageBytes = 4096

// A disk is the storage for a machine's memory. It is unlimited, unless Fill has made it full.
type disk struct {
	full bool
	free int // free pages of a full disk: those that Fill left, and those given back since
	// refused is called for each reservation that finds no room; may be nil.
	refused func()
}

// pages tracks which pages of one memory have storage. It is an nvram.Storage.
type pages struct {
	disk *disk
	has  []bool
}

var _ nvram.Storage = (*pages)(nil)

func newPages(d *disk, size int64) *pages {
	return &pages{d, make([]bool, (size+pageBytes-1)/pageBytes)}
}

// Reserve implements nvram.Storage. If there is not enough room, it reserves nothing.
func (p *pages) Reserve(off, n uint64) error {
	part := p.has[off/pageBytes : (off+n+pageBytes-1)/pageBytes]
	missing := 0
	for _, has := range part {
		if !has {
			missing++
		}
	}
	if p.disk.full && missing > p.disk.free {
		if p.disk.refused != nil {
			p.disk.refused()
		}
		return fmt.Errorf("sim: %w for %d pages", nvram.ErrNoSpace, missing)
	}
	p.disk.free -= missing
	for i := range part {
		part[i] = true
	}
	return nil
}

// Discard implements nvram.Storage.
func (p *pages) Discard(off, n uint64) {
	part := p.has[off/pageBytes : (off+n+pageBytes-1)/pageBytes]
	for i, has := range part {
		if has {
			p.disk.free++
		}
		part[i] = false
	}
}

// Fill makes the machine's memory full from now on, except for this many free pages. Reserved pages
// stay, and pages that are given back can be reserved again. The memory is full until Relieve, or
// until it is lost.
func (m *Machine) Fill(free int) {
	m.note("memory full")
	*m.shelf.disk = disk{full: true, free: free, refused: func() { m.note("no storage") }}
}

// FreePages returns the number of free pages of a full memory: those that Fill left, and those
// given back since.
func (m *Machine) FreePages() int { return m.shelf.disk.free }

// Relieve ends Fill.
func (m *Machine) Relieve() {
	m.note("memory not full")
	*m.shelf.disk = disk{}
}
