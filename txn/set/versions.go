package set

import (
	"math/bits"

	"github.com/farmsql/farmsql/region"
)

// A Seen is an object whose version a transaction depends on, without its payload.
type Seen struct {
	Ptr     region.Ptr
	Version region.Version
}

// Versions keeps objects in the order in which they were added. It is for many objects of which few
// are looked for later: Add only appends, and Find makes the table of what has been added since.
type Versions struct {
	Entries []Seen // only the methods add or drop them
	// table is a hash table as that of a Set, of the first indexed entries. Of several entries with
	// one address it has the first.
	table   []uint32
	indexed int
	// different is the number of entries that the last removal of repeated ones has left.
	different int
}

// seenKeptMost bounds the number of entries whose memory is kept for the next transaction.
const seenKeptMost = 1 << 16

// repeatedMin is the number of entries from which on repeated ones are removed.
const repeatedMin = 1 << 16

// Add appends an object, which may be there already. A transaction may read the same objects any number of times. So
// whenever the entries have doubled, Add removes those that repeat an earlier one, and reports whether it has: the
// indexes of entries have then changed.
func (s *Versions) Add(p region.Ptr, v region.Version) (removed bool) {
	s.Entries = append(s.Entries, Seen{p, v})
	if len(s.Entries) < max(repeatedMin, 2*s.different) {
		return false
	}
	s.removeRepeated()
	return true
}

// removeRepeated removes the entries that are equal to an earlier one. Entries of one object with different versions stay:
// validation finds the conflict.
func (s *Versions) removeRepeated() {
	places := make([]uint32, 1<<bits.Len(uint(2*len(s.Entries))))
	mask := len(places) - 1
	kept := s.Entries[:0]
	for _, e := range s.Entries {
		i := startOf(e.Ptr.Addr) & mask
		for places[i] > 0 && kept[places[i]-1] != e {
			i = (i + 1) & mask
		}
		if places[i] == 0 {
			kept = append(kept, e)
			places[i] = uint32(len(kept))
		}
	}
	s.Entries, s.table, s.indexed, s.different = kept, nil, 0, len(kept)
}

// Find returns the index of the first entry with an address, or -1.
func (s *Versions) Find(a region.Addr) int {
	if len(s.Entries) == 0 {
		return -1
	}
	for ; s.indexed < len(s.Entries); s.indexed++ {
		if 2*(s.indexed+1) > len(s.table) {
			s.rebuild(max(tableMin, 2*len(s.table)))
		}
		s.index(s.indexed)
	}
	return int(s.table[s.place(a)]) - 1
}

// rebuild makes a table of n places.
func (s *Versions) rebuild(n int) {
	s.table = make([]uint32, n)
	for i := range s.indexed {
		s.index(i)
	}
}

// index adds entry i to the table, unless that has its address.
func (s *Versions) index(i int) {
	if at := s.place(s.Entries[i].Ptr.Addr); s.table[at] == 0 {
		s.table[at] = uint32(i + 1)
	}
}

// place returns the place of an address in the table, or the place where it would be added.
func (s *Versions) place(a region.Addr) int {
	mask := len(s.table) - 1
	for i := startOf(a); ; i++ {
		i &= mask
		if n := s.table[i]; n == 0 || s.Entries[n-1].Ptr.Addr == a {
			return i
		}
	}
}

// Reset drops all entries.
func (s *Versions) Reset() {
	if cap(s.Entries) > seenKeptMost {
		s.Entries = nil
	}
	s.Entries, s.table, s.indexed, s.different = s.Entries[:0], nil, 0, 0
}

// Held returns how many bytes the entries and their table take.
func (s *Versions) Held() int64 {
	const entryBytes, placeBytes = 24, 4
	return int64(len(s.Entries))*entryBytes + int64(len(s.table))*placeBytes
}
