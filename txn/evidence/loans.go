package evidence

import "github.com/farmsql/farmsql/txn/participant"

// EndLoans takes back the slots lent over connections that have ended. During a recovery it leaves
// that to Settle, which runs when all transactions are decided.
func (r *Recovery) EndLoans() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.going.Load() {
		r.endLoansLocked()
	}
}

// endLoansLocked takes back the slots lent to machines that have left the configuration, or over
// connections that have ended. If an undecided (parked) transaction has a slot locked, the slot stays
// until that transaction is decided, and goes back if it then holds no object.
func (r *Recovery) endLoansLocked() {
	connections := make(map[participant.Borrower]bool)
	for i, w := range r.Workers {
		w.Locked(func() {
			for _, l := range w.LogsLocked() {
				connections[participant.Borrower{Machine: l.From, Worker: uint16(i), Connection: l.Connection}] = true
			}
		})
	}
	isConnected := func(b participant.Borrower) bool { return connections[b] }
	for _, p := range r.Replicas.Loans.Except(isConnected) {
		if !r.Replicas.Loans.Take(p) {
			continue // the borrower has just returned this slot
		}
		if l := r.locks[p.Addr]; l != nil {
			l.release = true
			continue
		}
		if rt := r.Replicas.Routes.Of(p.Addr.Region()); rt != nil && rt.PrimaryHere && !rt.Local.Header(p.Addr.Offset()).Allocated() {
			r.Replicas.Allocator.Release(p)
		}
	}
}
