package participant

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// Loans are the slots in this machine's regions that it has reserved for objects of other machines'
// transactions. A message gives a slot back. Messages are input: a slot that was not lent, or that
// holds an object by now, does not go back to the allocator.
//
// A loan ends with the connection over which the slot was requested. The reply, or the message that
// gives the slot back, may have been lost with the connection; ending all of its loans is how the
// two machines agree again. The borrower aborts the transaction that wanted the slot.
type Loans struct {
	count atomic.Int64 // len(slots), so that most commits need not lock
	mu    lockrank.Mutex[lockrank.Leaf]
	slots map[region.Ptr]Loan
	// refused reports to which machines nothing is lent any more.
	refused func(rdma.MachineID) bool
}

// A Loan names the borrower, and the connection of its worker over which a slot was lent.
type Loan struct {
	Machine    rdma.MachineID
	Worker     uint16
	Connection uint32
}

// Refuse ends lending to the machines for which f returns true.
func (l *Loans) Refuse(f func(rdma.MachineID) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = f
}

// Add records a loan. It returns false if the borrower has left the configuration.
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

// Take removes the loan of p and reports whether there was one: the slot has come back, or has
// become an object.
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

// Except returns, in order, the slots whose loan is not good, or whose borrower is refused.
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
