package txn

import (
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/participant"
)

// lend records a loan. It returns false if the borrower has left the configuration, or the
// connection has ended.
func (m *Machine) lend(p region.Ptr, to participant.Loan) bool {
	if int(to.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[to.Worker]
	w.lock() // excludes relisten
	defer w.unlock()
	if peer := w.peerLocked(to.Machine); peer == nil || peer.life != to.Connection {
		return false
	}
	return m.replicas.Loans.Add(p, to)
}

// endLoansLocked takes back the slots lent to machines that have left the configuration, and those
// lent over connections that have ended. Some of them may be locked by transactions that are still
// undecided; these are parked. Such a slot is given back when the transaction is decided, if the
// slot holds no object then. The caller holds the recovery's lock.
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
			continue // it has just been returned
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
