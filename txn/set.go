package txn

import (
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
)

// An entry is one object in a transaction's read or write set.
type entry struct {
	ptr     region.Ptr
	version region.Version
	payload []byte
	// base is the payload that the object of a late write has in memory while the transaction has
	// it locked. A Question reads base, so that it does not see the transaction's own change.
	base []byte
	op   record.Op
	// lender is the machine that reserved the slot of an OpAlloc. It did so in configuration
	// config, over the connection with number connection.
	lender             rdma.MachineID
	config, connection uint32
	// part is the index of the object's primary among the commit's participants.
	part int16
	// late marks an entry made while an Intent is prepared: it was read just before LOCK, and if it
	// turns out to be stale, it is read again.
	late bool
	// dead marks a write that a rollback has undone, or an object that the transaction both
	// allocated and freed.
	dead bool
}

func (e *entry) write() record.Write {
	w := record.Write{Ptr: e.ptr, Version: e.version, Op: e.op}
	if e.op != record.OpFree {
		w.Payload = e.payload
	}
	return w
}

// A set keeps entries in the order in which they were added and finds them by
// address. Most transactions touch a handful of objects, which a scan finds
// fastest; beyond scanMax a hash table takes over.
type set struct {
	entries []entry
	// table is an open-addressed hash table: each entry's index + 1 is at the first place, from the
	// home of its address on, that was free when the entry was added; 0 is a free place. At least
	// half of the places are free. Its length is a power of two, or 0 while entries are found by
	// scanning.
	table []uint32
}

const (
	scanMax = 8
	// tableMin is the initial length of a table. A table of up to tableKeepMost places is kept for
	// the next transaction.
	tableMin      = 64
	tableKeepMost = 4096
)

func (s *set) find(a region.Addr) int {
	if len(s.table) == 0 {
		for i := range s.entries {
			if s.entries[i].ptr.Addr == a {
				return i
			}
		}
		return -1
	}
	return int(s.table[s.place(a)]) - 1
}

// place returns the place of an address in the table, or the place where it would be added.
func (s *set) place(a region.Addr) int {
	mask := len(s.table) - 1
	// Addresses are multiples of 64 or more: the upper bits of the product are well mixed.
	i := int(uint64(a) * 0x9e3779b97f4a7c15 >> 32)
	for {
		i &= mask
		if n := s.table[i]; n == 0 || s.entries[n-1].ptr.Addr == a {
			return i
		}
		i++
	}
}

// add appends e, whose address must not be in the set, and returns its index.
func (s *set) add(e entry) int {
	i := len(s.entries)
	s.entries = append(s.entries, e)
	switch {
	case i < scanMax && len(s.table) == 0:
	case 2*(i+1) > len(s.table):
		s.rebuild(max(tableMin, 2*len(s.table)))
	default:
		s.table[s.place(e.ptr.Addr)] = uint32(i + 1)
	}
	return i
}

// rebuild makes a table of n places.
func (s *set) rebuild(n int) {
	if n > cap(s.table) {
		s.table = make([]uint32, n)
	} else {
		s.table = s.table[:n]
		clear(s.table)
	}
	for i := range s.entries {
		s.table[s.place(s.entries[i].ptr.Addr)] = uint32(i + 1)
	}
}

// truncate drops the entries from n on.
func (s *set) truncate(n int) {
	if len(s.table) > 0 {
		// Remove the newest first: then no later entry depends on the place that becomes free.
		for i := len(s.entries) - 1; i >= n; i-- {
			s.table[s.place(s.entries[i].ptr.Addr)] = 0
		}
	}
	clear(s.entries[n:])
	s.entries = s.entries[:n]
}

func (s *set) reset() {
	clear(s.entries)
	s.entries = s.entries[:0]
	if s.table = s.table[:0]; cap(s.table) > tableKeepMost {
		s.table = nil
	}
}

// An arena hands out byte slices that live as long as a transaction. Chunks are
// kept for the next transaction up to arenaKeepBytes.
type arena struct {
	chunk []byte
	used  int
	full  int // bytes used in earlier chunks
}

const (
	arenaChunkBytes = 16 << 10
	arenaKeepBytes  = 1 << 20
)

// get returns n bytes, not cleared, whose capacity is n.
func (a *arena) get(n int) []byte {
	if a.used+n > len(a.chunk) {
		a.full += len(a.chunk)
		a.chunk = make([]byte, max(arenaChunkBytes, n, min(2*len(a.chunk), 1<<20)))
		a.used = 0
	}
	b := a.chunk[a.used : a.used+n : a.used+n]
	a.used += (n + 7) &^ 7
	if a.used > len(a.chunk) {
		a.used = len(a.chunk)
	}
	return b
}

func (a *arena) copy(b []byte) []byte {
	c := a.get(len(b))
	copy(c, b)
	return c
}

func (a *arena) reset() {
	if len(a.chunk) > arenaKeepBytes {
		a.chunk = nil
	}
	a.used, a.full = 0, 0
}
