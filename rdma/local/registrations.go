package local

import (
	"math/bits"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A registration is one entry of the table; memory is nil in an unused slot.
type registration struct {
	key    rdma.Key
	memory *nvram.Memory
	// bytes is the memory's size. An asynchronous post checks an operation by it, and must not touch
	// the memory itself, since Deregister does not wait for posts.
	bytes uint64
}

// registrations is an immutable hash table with open addressing, at most half
// full: a look-up is a multiplication and, nearly always, one cache line.
type registrations struct {
	count int
	shift int // 64 - log2(len(slots))
	slots []registration
}

var noRegistrations = registrations{shift: 63, slots: make([]registration, 2)}

// lookup returns the registration of k; its memory is nil if there is none.
func (r *registrations) lookup(k rdma.Key) *registration {
	for i := r.home(k); ; i = (i + 1) & (len(r.slots) - 1) {
		s := &r.slots[i]
		if s.key == k || s.memory == nil {
			return s
		}
	}
}

// home returns the slot at which the search for k begins.
func (r *registrations) home(k rdma.Key) int {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return int((uint64(k) * golden) >> r.shift)
}

// with returns a copy of the table with entry e added, whose key must be new.
func (r *registrations) with(e registration) *registrations {
	next := newRegistrations(r.count + 1)
	for _, old := range r.slots {
		next.insert(old)
	}
	next.insert(e)
	return next
}

// without returns a copy of the table without the entry of k.
func (r *registrations) without(k rdma.Key) *registrations {
	next := newRegistrations(r.count)
	for _, old := range r.slots {
		if old.key != k {
			next.insert(old)
		}
	}
	return next
}

// newRegistrations returns an empty table that is at most half full with count entries.
func newRegistrations(count int) *registrations {
	log := bits.Len(uint(max(2*count, 2) - 1))
	return &registrations{shift: 64 - log, slots: make([]registration, 1<<log)}
}

func (r *registrations) insert(e registration) {
	if e.memory == nil {
		return // an unused slot of the table that is copied
	}
	i := r.home(e.key)
	for r.slots[i].memory != nil {
		i = (i + 1) & (len(r.slots) - 1)
	}
	r.slots[i] = e
	r.count++
}
