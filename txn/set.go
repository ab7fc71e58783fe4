package txn

import (
	"github.com/farmsql/farmsql/region"
)

// An entry is one object in a transaction's read or write set.
type entry struct {
	ptr     region.Ptr
	version region.Version
	payload []byte
	// base is what a late write's object holds in memory while we have it
	// locked; a Question about it must not see our own change.
	base []byte
	op   WriteOp
	// config is the configuration in which an OpAlloc has got its slot, connection
	// that to the primary which has lent it.
	config, connection uint32
	// part is the index of the object's primary among the commit's participants.
	part int16
	// late marks an entry made while preparing an Intent: it was read just
	// before LOCK, so when it turns out to be stale it is read again.
	late bool
	// dead marks a write undone by a rollback, or an object allocated and freed
	// again by the same transaction.
	dead bool
}

func (e *entry) write() Write {
	w := Write{Ptr: e.ptr, Version: e.version, Op: e.op}
	if e.op != OpFree {
		w.Payload = e.payload
	}
	return w
}

// A set keeps entries in the order in which they were added and finds them by
// address. Most transactions touch a handful of objects, which a scan finds
// faster than a map; beyond scanMax a map takes over.
type set struct {
	entries []entry
	byAddr  map[region.Addr]int32
}

const scanMax = 12

func (s *set) find(a region.Addr) int {
	if s.byAddr != nil {
		if i, ok := s.byAddr[a]; ok {
			return int(i)
		}
		return -1
	}
	for i := range s.entries {
		if s.entries[i].ptr.Addr == a {
			return i
		}
	}
	return -1
}

// add appends e, whose address must not be in the set, and returns its index.
func (s *set) add(e entry) int {
	i := len(s.entries)
	s.entries = append(s.entries, e)
	switch {
	case s.byAddr != nil:
		s.byAddr[e.ptr.Addr] = int32(i)
	case i >= scanMax:
		s.byAddr = make(map[region.Addr]int32, 4*scanMax)
		for j := range s.entries {
			s.byAddr[s.entries[j].ptr.Addr] = int32(j)
		}
	}
	return i
}

// truncate drops the entries from n on.
func (s *set) truncate(n int) {
	if s.byAddr != nil {
		for i := n; i < len(s.entries); i++ {
			delete(s.byAddr, s.entries[i].ptr.Addr)
		}
	}
	clear(s.entries[n:])
	s.entries = s.entries[:n]
}

func (s *set) reset() {
	clear(s.entries)
	s.entries = s.entries[:0]
	s.byAddr = nil
}

// An arena hands out byte slices that live as long as a transaction. Chunks are
// kept for the next transaction up to arenaKeepBytes.
type arena struct {
	chunk []byte
	used  int
}

const (
	arenaChunkBytes = 16 << 10
	arenaKeepBytes  = 64 << 10
)

// get returns n bytes, not cleared, with no capacity beyond them.
func (a *arena) get(n int) []byte {
	if a.used+n > len(a.chunk) {
		a.chunk = make([]byte, max(arenaChunkBytes, n, min(2*len(a.chunk), 1<<20)))
		a.used = 0
	}
	b := a.chunk[a.used : a.used+n : a.used+n]
	a.used += roundUp8(n)
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
	a.used = 0
}
