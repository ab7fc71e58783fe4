package worker

import (
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn/commitstate"
)

// Acks count the acknowledgements of one transaction's COMMIT-PRIMARY records. The transaction may
// be truncated once all have arrived.
type Acks struct {
	seq    uint64
	config uint32
	open   int
	peers  []*peer
	// first is the commit that waits for the first arrival, and nil after that. If no record
	// arrives, the commit gets the first failure.
	first  *Commit
	failed error
}

// AwaitAcksLocked begins the count for a commit that is about to write its COMMIT-PRIMARY records.
// The count begins at one, so that it cannot reach zero before all records are written: then the
// caller takes the one off with CountDownLocked. Unless this machine is itself a primary of the
// commit, First is open until one record has arrived.
func (w *Worker) AwaitAcksLocked(c *Commit) *Acks {
	a := &c.own
	if c.IsRemote() {
		// Acknowledgements may arrive after another transaction has taken over this memory.
		a = &Acks{peers: c.peers()}
	}
	*a = Acks{seq: c.ID.Seq, config: c.ID.Config, peers: a.peers, open: 1}
	c.pending = a
	if !c.IsPrimary() {
		c.First.Add(1)
		a.first = c
	}
	return a
}

// ackedLocked counts one COMMIT-PRIMARY record that has arrived or failed.
func (w *Worker) ackedLocked(a *Acks, err error) {
	switch {
	case a.config != w.config && !sabotage.OldAcks.Skipped():
		return // acknowledgements of an older configuration are ignored
	case err == nil && a.first != nil:
		w.LeaveLocked(a.first, commitstate.Truncating)
		a.first.First.DoneLocked(nil)
		a.first = nil
	case a.failed == nil:
		a.failed = err // nil if the record has arrived
	}
	w.CountDownLocked(a)
}

// CountDownLocked takes one off the count. When nothing is left and no record has failed, the
// transaction can be truncated; if one has failed, it is left to recovery and never truncated here.
func (w *Worker) CountDownLocked(a *Acks) {
	if a.open--; a.open > 0 {
		return
	}
	if a.first != nil { // no record has arrived
		a.first.First.DoneLocked(a.failed)
		a.first = nil
	}
	if a.failed == nil && !sabotage.PrimaryAcks.Skipped() {
		w.finishLocked(a.seq, a.peers)
	}
}
