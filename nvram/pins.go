package nvram

import (
	"cmp"
	"slices"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// pins are the parts of a memory whose pages a network card holds. If such a page were given back to the file system,
// the card would keep it, while the next access to the memory would get another page. So these pages are not given
// back.
type pins struct {
	lockrank.Mutex[lockrank.Pins]
	all []pin // in the order of begin; they may overlap
}

// A pin is one part, of whole pages.
type pin struct{ begin, end uint64 }

func pinOf(off, n uint64) pin {
	return pin{off &^ (pageBytes - 1), (off + n + pageBytes - 1) &^ (pageBytes - 1)}
}

// Pin makes Discard keep the storage of n bytes at off, and only clear their pages, until Unpin is called as often with
// the same bytes. Call it before a network card takes hold of the pages. Pin waits for a Discard in progress.
func (m *Memory) Pin(off, n uint64) {
	p := pinOf(off, n)
	m.pins.Lock()
	defer m.pins.Unlock()
	at, _ := slices.BinarySearchFunc(m.pins.all, p, func(a, b pin) int { return cmp.Compare(a.begin, b.begin) })
	m.pins.all = slices.Insert(m.pins.all, at, p)
}

// Unpin takes back one Pin.
func (m *Memory) Unpin(off, n uint64) {
	m.pins.Lock()
	defer m.pins.Unlock()
	if at := slices.Index(m.pins.all, pinOf(off, n)); at >= 0 {
		m.pins.all = slices.Delete(m.pins.all, at, at+1)
	}
}

// splitLocked calls keep for the pinned parts between begin and end, and free for the other parts, in order.
func (s *pins) splitLocked(begin, end uint64, free, keep func(begin, end uint64)) {
	for _, p := range s.all {
		if p.end <= begin {
			continue
		}
		if p.begin >= end || begin >= end {
			break
		}
		if p.begin > begin {
			free(begin, p.begin)
		}
		keep(max(begin, p.begin), min(end, p.end))
		begin = min(end, p.end)
	}
	if begin < end {
		free(begin, end)
	}
}
