// Package set implements the read set and the write set of a transaction (Set), and the memory of
// their payloads (Arena). Both belong to the transaction's goroutine.
package set

import (
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
)

// An Entry is one object in a transaction's read or write set.
type Entry struct {
	Ptr     region.Ptr
	Version region.Version
	Payload []byte
	// Base is the committed payload of an object that the transaction writes late. Questions read
	// Base, so that they do not see the transaction's own change.
	Base []byte
	Op   record.Op
	// Lender is the machine that reserved the slot of an OpAlloc. It did so in configuration
	// Config, over the connection with number Connection.
	Lender             rdma.MachineID
	Config, Connection uint32
	// Part is the index of the object's primary among the commit's participants.
	Part int16
	// Late marks an entry that the preparation of an Intent has made, just before LOCK. If the entry
	// turns out to be stale, the Intent is prepared again.
	Late bool
	// Dead marks a write that a rollback has undone, or an object that the transaction both
	// allocated and freed.
	Dead bool
}

// Write returns e as the write of a record.
func (e *Entry) Write() record.Write {
	w := record.Write{Ptr: e.Ptr, Version: e.Version, Op: e.Op}
	if e.Op != record.OpFree {
		w.Payload = e.Payload
	}
	return w
}

// Written reports whether the transaction writes e. A late entry with OpUpdate but without Base was
// only read.
func (e *Entry) Written() bool {
	isOnlyRead := e.Op == record.OpUpdate && e.Late && e.Base == nil
	return !e.Dead && !isOnlyRead
}

// A Set keeps entries in the order in which they were added and finds them by
// address. Most transactions touch a handful of objects, which a scan finds
// fastest; beyond scanMax a hash table takes over.
type Set struct {
	// Entries may be changed, but only the methods add or drop them.
	Entries []Entry
	// table is a hash table with linear probing, from addresses to indexes in Entries. A place holds
	// index + 1, or 0 if it is free; at least half of the places are free. The table's length is a
	// power of two, or 0 while entries are found by scanning.
	table []uint32
}

const (
	scanMax = 8
	// tableMin is the initial length of a table. A table of up to tableKeepMost places is kept for
	// the next transaction.
	tableMin      = 64
	tableKeepMost = 4096
)

// Find returns the index of the entry with an address, or -1.
func (s *Set) Find(a region.Addr) int {
	if len(s.table) == 0 {
		for i := range s.Entries {
			if s.Entries[i].Ptr.Addr == a {
				return i
			}
		}
		return -1
	}
	return int(s.table[s.place(a)]) - 1
}

// place returns the place of an address in the table, or the place where it would be added.
func (s *Set) place(a region.Addr) int {
	mask := len(s.table) - 1
	for i := startOf(a); ; i++ {
		i &= mask
		if n := s.table[i]; n == 0 || s.Entries[n-1].Ptr.Addr == a {
			return i
		}
	}
}

// startOf returns a number whose lowest bits are the place at which the search for an address begins.
func startOf(a region.Addr) int {
	// Addresses are multiples of 64 or more: the upper bits of the product are well mixed.
	return int(uint64(a) * 0x9e3779b97f4a7c15 >> 32)
}

// Add appends e, whose address must not be in the set, and returns its index.
func (s *Set) Add(e Entry) int {
	i := len(s.Entries)
	s.Entries = append(s.Entries, e)
	switch {
	case i < scanMax && len(s.table) == 0: // a scan will find it
	case 2*(i+1) > len(s.table):
		s.rebuild(max(tableMin, 2*len(s.table)))
	default:
		s.table[s.place(e.Ptr.Addr)] = uint32(i + 1)
	}
	return i
}

// rebuild makes a table of n places.
func (s *Set) rebuild(n int) {
	if n > cap(s.table) {
		s.table = make([]uint32, n)
	} else {
		s.table = s.table[:n]
		clear(s.table)
	}
	for i := range s.Entries {
		s.table[s.place(s.Entries[i].Ptr.Addr)] = uint32(i + 1)
	}
}

// Truncate drops the entries from n on.
func (s *Set) Truncate(n int) {
	if len(s.table) > 0 {
		// Remove the newest first: then no later entry depends on the place that becomes free.
		for i := len(s.Entries) - 1; i >= n; i-- {
			s.table[s.place(s.Entries[i].Ptr.Addr)] = 0
		}
	}
	clear(s.Entries[n:])
	s.Entries = s.Entries[:n]
}

// Reset empties the set.
func (s *Set) Reset() {
	clear(s.Entries)
	s.Entries = s.Entries[:0]
	if s.table = s.table[:0]; cap(s.table) > tableKeepMost {
		s.table = nil
	}
}

// Places returns how many places the set's table has.
func (s *Set) Places() int { return len(s.table) }
