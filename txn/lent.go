package txn

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// lent are the slots of this machine's regions that it has reserved for objects
// of other machines' transactions. They come back by a message, which is input:
// what was not lent, or is an object by now, is not given back to the allocator.
//
// A loan ends with the connection over which it was asked for. The reply may have
// been lost with it, or the message that gives the slot back: only a new start
// gets the two machines to agree. The borrower aborts what it wanted the slot for.
type lent struct {
	count atomic.Int64 // len(slots), so that most commits need not lock
	mu    lockrank.Mutex[lockrank.Leaf]
	slots map[region.Ptr]loan
	// refused says to whom nothing is lent any more.
	refused func(rdma.MachineID) bool
}

// A loan says over which connection of a machine's worker a slot was lent.
type loan struct {
	machine    rdma.MachineID
	worker     uint16
	connection uint32
}

func (l *lent) refuse(f func(rdma.MachineID) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = f
}

// lend notes a loan. It reports false if the borrower is no member any more, or the
// connection has ended.
func (m *Machine) lend(p region.Ptr, to loan) bool {
	if int(to.worker) >= len(m.workers) {
		return false
	}
	w := m.workers[to.worker]
	w.lock() // against relisten
	defer w.unlock()
	if peer := w.peerLocked(to.machine); peer == nil || peer.life != to.connection {
		return false
	}
	return m.lent.add(p, to)
}

// add reports false if the borrower is no member any more.
func (l *lent) add(p region.Ptr, to loan) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil && l.refused(to.machine) {
		return false
	}
	if l.slots == nil {
		l.slots = make(map[region.Ptr]loan)
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

// except returns the slots that are lent, but for those of some loans, in order.
func (l *lent) except(good func(loan) bool) []region.Ptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ptrs []region.Ptr
	for p, to := range l.slots {
		if l.refused != nil && l.refused(to.machine) || !good(to) {
			ptrs = append(ptrs, p)
		}
	}
	slices.SortFunc(ptrs, func(a, b region.Ptr) int { return cmp.Compare(a.Addr, b.Addr) })
	return ptrs
}

// endLoansLocked takes back the slots lent to machines that are no members any more, and
// over connections that have ended. No transaction of theirs is left to recover but
// those that are parked: a slot that one of them has locked is given back when it is
// decided, if there is no object in it then. The recovery's lock is held.
func (m *Machine) endLoansLocked() {
	connections := make(map[loan]bool)
	for _, w := range m.workers {
		w.lock()
		for _, p := range w.peers {
			if p != nil {
				connections[loan{p.id, w.id, p.life}] = true
			}
		}
		w.unlock()
	}
	for _, p := range m.lent.except(func(l loan) bool { return connections[l] }) {
		if !m.lent.take(p) {
			continue // it has just come back
		}
		if l := m.recovery.locks[p.Addr]; l != nil {
			l.release = true
			continue
		}
		if rt := m.route(p.Addr.Region()); rt != nil && rt.PrimaryHere && !rt.Local.Header(p.Addr.Offset()).Allocated() {
			m.cfg.Allocator.Release(p)
		}
	}
}
