package participant

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// Loans are the slots in this machine's regions that it has reserved for new objects of other
// machines' transactions. The borrower returns an unused slot by a message. Messages cannot be
// trusted: only a slot that is on loan, and holds no object yet, goes back to the allocator.
//
// A loan ends with the connection over which the slot was requested. The reply, or the message that
// returns the slot, may have been lost with the connection, so the two machines may disagree; ending
// all loans of the connection makes them agree again. The borrower aborts the transaction that wanted
// the slot.
//
// The loans are sharded by the slot's address. Each shard has its mutex on cache lines of its own, so
// that commits on different processors seldom contend.
type Loans struct {
	_      prefetch.Pad // between the fields of Replicas that commits load and shards[0], which is written
	shards [loanShards]loanShard
}

const loanShards = 32 // a power of two

type loanShard struct {
	count atomic.Int64 // len(slots), so that most commits need not take mu
	mu    lockrank.Mutex[lockrank.Leaf]
	slots map[region.Ptr]Loan
	// refused reports whether a machine gets no more loans; if it is nil, all machines get loans.
	refused func(rdma.MachineID) bool
	_       prefetch.Pad
}

// of returns the shard of the slot at p.
func (l *Loans) of(p region.Ptr) *loanShard {
	return &l.shards[((uint64(p.Addr)*0x9e3779b97f4a7c15)>>32)%loanShards]
}

// A Loan says to whom a slot was lent, and in which configuration it was reserved.
type Loan struct {
	Borrower
	Config uint32
}

// A Borrower is a worker of another machine, and the connection over which it borrows.
type Borrower struct {
	Machine    rdma.MachineID
	Worker     uint16
	Connection uint32
}

// Refuse stops lending to the machines for which f returns true.
func (l *Loans) Refuse(f func(rdma.MachineID) bool) {
	for i := range l.shards {
		x := &l.shards[i]
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

// Take ends the loan of p, because the slot has become an object, or the connection has ended. It reports
// whether there was such a loan.
func (l *Loans) Take(p region.Ptr) bool {
	return l.takeIf(p, func(Loan) bool { return true })
}

// Return ends the loan of p, because the borrower does not need the slot. It reports whether there was
// such a loan of the given configuration; 0 stands for any. A message that returns a slot can come so
// late that the loan has ended without it, and the slot is somebody else's.
func (l *Loans) Return(p region.Ptr, config uint32) bool {
	return l.takeIf(p, func(x Loan) bool {
		return config == 0 || x.Config == config || sabotage.EarlierLoans.Skipped()
	})
}

func (l *Loans) takeIf(p region.Ptr, isMeant func(Loan) bool) bool {
	x := l.of(p)
	if x.count.Load() == 0 {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	loan, ok := x.slots[p]
	if !ok || !isMeant(loan) {
		return false
	}
	delete(x.slots, p)
	x.count.Store(int64(len(x.slots)))
	return true
}

// Forget ends the loans of the slots that the function selects, which are in regions with another
// primary now.
func (l *Loans) Forget(isOver func(region.Ptr) bool) {
	for i := range l.shards {
		x := &l.shards[i]
		x.mu.Lock()
		maps.DeleteFunc(x.slots, func(p region.Ptr, _ Loan) bool { return isOver(p) })
		x.count.Store(int64(len(x.slots)))
		x.mu.Unlock()
	}
}

// Except returns, in order, the slots on loan for which good returns false, or whose borrower is
// refused.
func (l *Loans) Except(good func(Borrower) bool) (ptrs []region.Ptr) {
	for i := range l.shards {
		ptrs = l.shards[i].except(good, ptrs)
	}
	slices.SortFunc(ptrs, func(a, b region.Ptr) int { return cmp.Compare(a.Addr, b.Addr) })
	return ptrs
}

// except is Except for one shard: it appends the slots to ptrs, in any order.
func (x *loanShard) except(good func(Borrower) bool, ptrs []region.Ptr) []region.Ptr {
	x.mu.Lock()
	defer x.mu.Unlock()
	for p, to := range x.slots { // any order: Except sorts
		if (x.refused != nil && x.refused(to.Machine)) || !good(to.Borrower) {
			ptrs = append(ptrs, p)
		}
	}
	return ptrs
}
