package txn

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// lent are the slots of this machine's regions that it has reserved for objects
// of other machines' transactions. They come back by a message, which is input:
// what was not lent, or is an object by now, is not given back to the allocator.
type lent struct {
	count atomic.Int64 // len(slots), so that most commits need not lock
	mu    sync.Mutex
	slots map[region.Ptr]rdma.MachineID
	// refused says to whom nothing is lent any more.
	refused func(rdma.MachineID) bool
}

func (l *lent) refuse(f func(rdma.MachineID) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = f
}

// add reports false if the borrower is no member any more.
func (l *lent) add(p region.Ptr, to rdma.MachineID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil && l.refused(to) {
		return false
	}
	if l.slots == nil {
		l.slots = make(map[region.Ptr]rdma.MachineID)
	}
	l.slots[p] = to
	l.count.Store(int64(len(l.slots)))
	return true
}

// take forgets p and reports whether it was lent: it has come back, or become an
// object.
func (l *lent) take(p region.Ptr) bool {
	if l.count.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.slots[p]
	delete(l.slots, p)
	l.count.Store(int64(len(l.slots)))
	return ok
}

// to returns the slots lent to machines that match, in order.
func (l *lent) to(match func(rdma.MachineID) bool) []region.Ptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ptrs []region.Ptr
	for p, m := range l.slots {
		if match(m) {
			ptrs = append(ptrs, p)
		}
	}
	slices.SortFunc(ptrs, func(a, b region.Ptr) int { return cmp.Compare(a.Addr, b.Addr) })
	return ptrs
}
