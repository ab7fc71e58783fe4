package txn

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
)

// lend notes a loan. It reports false if the borrower is no member any more, or the
// connection has ended.
func (m *Machine) lend(p region.Ptr, to participant.Loan) bool {
	if int(to.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[to.Worker]
	w.lock() // against relisten
	defer w.unlock()
	if peer := w.peerLocked(to.Machine); peer == nil || peer.life != to.Connection {
		return false
	}
	return m.replicas.Loans.Add(p, to)
}

// endLoansLocked takes back the slots lent to machines that are no members any more, and
// over connections that have ended. No transaction of theirs is left to recover but
// those that are parked: a slot that one of them has locked is given back when it is
// decided, if there is no object in it then. The recovery's lock is held.
func (m *Machine) endLoansLocked() {
	connections := make(map[participant.Loan]bool)
	for _, w := range m.workers {
		w.lock()
		for _, p := range w.peers {
			if p != nil {
				connections[participant.Loan{Machine: p.id, Worker: w.id, Connection: p.life}] = true
			}
		}
		w.unlock()
	}
	for _, p := range m.replicas.Loans.Except(func(l participant.Loan) bool { return connections[l] }) {
		if !m.replicas.Loans.Take(p) {
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
