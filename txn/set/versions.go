package set

import "github.com/farmsql/farmsql/region"

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
}

// seenKeptMost bounds the number of entries whose memory is kept for the next transaction.
const seenKeptMost = 1 << 16

// Add appends an object, which may be there already.
func (s *Versions) Add(p region.Ptr, v region.Version) {
	s.Entries = append(s.Entries, Seen{p, v})
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
	s.Entries, s.table, s.indexed = s.Entries[:0], nil, 0
}

// Held returns how many bytes the entries and their table take.
func (s *Versions) Held() int64 {
	const entryBytes, placeBytes = 24, 4
	return int64(len(s.Entries))*entryBytes + int64(len(s.table))*placeBytes
}
