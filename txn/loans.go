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

// endLoansLocked takes back two kinds of lent slots: slots lent to machines that have left the
// configuration, and slots lent over connections that have ended. A slot may be locked by a parked
// transaction, which is still undecided. It is given back when that transaction is decided, if the
// slot then holds no object. The caller must hold the recovery's lock.
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
			continue // the borrower has just returned this slot
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
