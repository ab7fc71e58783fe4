package participant

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// Loans are the slots of this machine's regions that it has reserved for objects
// of other machines' transactions. They come back by a message, which is input:
// what was not lent, or is an object by now, is not given back to the allocator.
//
// A loan ends with the connection over which it was asked for. The reply may have
// been lost with it, or the message that gives the slot back: only a new start
// gets the two machines to agree. The borrower aborts what it wanted the slot for.
type Loans struct {
	count atomic.Int64 // len(slots), so that most commits need not lock
	mu    lockrank.Mutex[lockrank.Leaf]
	slots map[region.Ptr]Loan
	// refused says to whom nothing is lent any more.
	refused func(rdma.MachineID) bool
}

// A Loan says over which connection of a machine's worker a slot was lent.
type Loan struct {
	Machine    rdma.MachineID
	Worker     uint16
	Connection uint32
}

// Refuse has nothing lent any more to machines that f names.
func (l *Loans) Refuse(f func(rdma.MachineID) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = f
}

// Add reports false if the borrower is no member any more.
func (l *Loans) Add(p region.Ptr, to Loan) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil && l.refused(to.Machine) {
		return false
	}
	if l.slots == nil {
		l.slots = make(map[region.Ptr]Loan)
	}
	l.slots[p] = to
	l.count.Store(int64(len(l.slots)))
	return true
}

// Take forgets p and reports whether it was lent: it has come back, or become an
// object.
func (l *Loans) Take(p region.Ptr) bool {
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

// Except returns the slots that are lent, but for those of some loans, in order.
func (l *Loans) Except(good func(Loan) bool) []region.Ptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ptrs []region.Ptr
	for p, to := range l.slots { // any order: it is sorted
		if l.refused != nil && l.refused(to.Machine) || !good(to) {
			ptrs = append(ptrs, p)
		}
	}
	slices.SortFunc(ptrs, func(a, b region.Ptr) int { return cmp.Compare(a.Addr, b.Addr) })
	return ptrs
}
