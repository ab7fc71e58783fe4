package nvram

import (
	"fmt"
	"testing"
)

// A freed is a file system that notes how many pages it is given back.
type freed struct{ pages uint64 }

func (f *freed) Reserve(uint64, uint64) error { return nil }
func (f *freed) Discard(_, n uint64)          { f.pages += n / pageBytes }

// TestPinnedPagesStay: Discard clears pages that are pinned, and frees the storage of the others.
func TestPinnedPagesStay(t *testing.T) {
	const page = pageBytes
	m, storage := NewMemory(16*page), new(freed)
	m.Keep(storage)
	discard := func(what string, want uint64) {
		t.Helper()
		for off := uint64(0); off < m.Size(); off += WordBytes {
			m.Store(off, 1)
		}
		storage.pages = 0
		m.Discard(0, m.Size())
		for off := uint64(0); off < m.Size(); off += WordBytes {
			if m.Load(off) != 0 {
				t.Fatalf("%s: the word at %#x is %d", what, off, m.Load(off))
			}
		}
		if storage.pages != want {
			t.Errorf("%s: %d pages are freed, want %d", what, storage.pages, want)
		}
	}
	m.Pin(2*page, 2*page)
	m.Pin(3*page, 3*page) // overlaps
	m.Pin(3*page, 3*page) // and again
	m.Pin(15*page+8, 8)   // the whole page
	discard("pinned", 11)
	m.Unpin(3*page, 3*page)
	discard("unpinned once of twice", 11)
	m.Unpin(3*page, 3*page)
	discard("the overlap is over", 13)
	m.Unpin(2*page, 2*page)
	m.Unpin(15*page+8, 8)
	m.Unpin(0, page) // which was not
	discard("nothing is pinned", 16)
}

func TestPinsSplit(t *testing.T) {
	s := pins{all: []pin{{2, 4}, {3, 6}, {8, 9}}}
	got := ""
	s.splitLocked(1, 9, func(b, e uint64) { got += fmt.Sprint("free", b, e, " ") }, func(b, e uint64) { got += fmt.Sprint("keep", b, e, " ") })
	if want := "free1 2 keep2 4 keep4 6 free6 8 keep8 9 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got = ""
	s.splitLocked(3, 4, func(b, e uint64) { got += "free" }, func(b, e uint64) { got += fmt.Sprint("keep", b, e) })
	if got != "keep3 4" {
		t.Errorf("within a pin: %q", got)
	}
}
