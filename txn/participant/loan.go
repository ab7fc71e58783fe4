package participant

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
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
//
// The loans are in parts by the slot's address, each with a lock on cache lines of its own: commits
// on different processors seldom want the same lock.
type Loans struct {
	_     prefetch.Pad // commits load the fields of Replicas that come before, and others write parts[0]
	parts [loanParts]loanPart
}

const loanParts = 32 // a power of two

type loanPart struct {
	count atomic.Int64 // len(slots), so that most commits need not lock
	mu    lockrank.Mutex[lockrank.Leaf]
	slots map[region.Ptr]Loan
	// refused reports to which machines nothing is lent any more.
	refused func(rdma.MachineID) bool
	_       prefetch.Pad
}

// of returns the part of the slot at p.
func (l *Loans) of(p region.Ptr) *loanPart {
	return &l.parts[uint64(p.Addr)*0x9e3779b97f4a7c15>>32%loanParts]
}

// A Loan names the borrower, and the connection of its worker over which a slot was lent.
type Loan struct {
	Machine    rdma.MachineID
	Worker     uint16
	Connection uint32
}

// Refuse ends lending to the machines for which f returns true.
func (l *Loans) Refuse(f func(rdma.MachineID) bool) {
	for i := range l.parts {
		x := &l.parts[i]
		x.mu.Lock()
		x.refused = f
		x.mu.Unlock()
	}
}

// Add records a loan. It returns false if the borrower has left the configuration.
func (l *Loans) Add(p region.Ptr, to Loan) bool {
	x := l.of(p)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refused != nil && x.refused(to.Machine) {
		return false
	}
	if x.slots == nil {
		x.slots = make(map[region.Ptr]Loan)
	}
	x.slots[p] = to
	x.count.Store(int64(len(x.slots)))
	return true
}

// Take removes the loan of p and reports whether there was one: the slot has come back, or has
// become an object.
func (l *Loans) Take(p region.Ptr) bool {
	x := l.of(p)
	if x.count.Load() == 0 {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.slots[p]
	delete(x.slots, p)
	x.count.Store(int64(len(x.slots)))
	return ok
}

// Except returns, in order, the slots whose loan is not good, or whose borrower is refused.
func (l *Loans) Except(good func(Loan) bool) (ptrs []region.Ptr) {
	for i := range l.parts {
		ptrs = l.parts[i].except(good, ptrs)
	}
	slices.SortFunc(ptrs, func(a, b region.Ptr) int { return cmp.Compare(a.Addr, b.Addr) })
	return ptrs
}

// except appends the part's slots to ptrs, in any order.
func (x *loanPart) except(good func(Loan) bool, ptrs []region.Ptr) []region.Ptr {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p, to := range x.slots { // any order: it is sorted
		if x.refused != nil && x.refused(to.Machine) || !good(to) {
			ptrs = append(ptrs, p)
		}
	}
	return ptrs
}
