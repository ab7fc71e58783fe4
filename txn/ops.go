package txn

import (
	"errors"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/commitstate"
	"github.com/farmsql/farmsql/txn/wait"
)

// ops are a worker's pending RDMA operations, guarded by the worker's lock. A provider that copies
// memory completes each operation before it returns, and then ops is empty.
type ops struct {
	slots []pendingOp
	free  []uint32
	// completions is the buffer that pollLocked takes completions into.
	completions [32]rdma.Completion
}

// A pendingOp says whom to tell of an operation's completion.
type pendingOp struct {
	wait *wait.Waiter
	acks *acks
	// record says that a record is being written to the peer's log. If the write fails, for
	// whatever reason, the peer is fenced: only recovery can end the transaction.
	record bool
	// refresh is the peer whose log's head is being read.
	refresh *peer
}

// acks counts the acknowledgements of one transaction's COMMIT-PRIMARY records. The transaction may
// be truncated once all have arrived.
type acks struct {
	seq    uint64
	config uint32
	open   int
	peers  []*peer
	// first is the commit that waits for the first arrival, and nil after that. If no record
	// arrives, the commit gets the first failure.
	first  *commit
	failed error
}

func (o *ops) add(op pendingOp) (tag uint64) {
	if n := len(o.free); n > 0 {
		tag = uint64(o.free[n-1])
		o.free = o.free[:n-1]
		o.slots[tag] = op
		return tag
	}
	o.slots = append(o.slots, op)
	return uint64(len(o.slots) - 1)
}

// drop forgets an operation that was completed or refused at once.
func (o *ops) drop(tag uint64) pendingOp {
	op := o.slots[tag]
	o.slots[tag] = pendingOp{}
	o.free = append(o.free, uint32(tag))
	return op
}

// pollLocked takes the completions. A failure may be among them although no operation is pending
// here: unsignalled operations have no slot.
func (w *worker) pollLocked() {
	taken := &w.ops.completions
	for {
		n := w.q.Poll(taken[:])
		for _, c := range taken[:n] {
			w.completeLocked(c)
		}
		if n < len(taken) {
			return
		}
	}
}

// failOpsLocked fails all pending operations.
func (w *worker) failOpsLocked(err error) {
	o := &w.ops
	for tag := range o.slots {
		if o.slots[tag] != (pendingOp{}) {
			op := o.drop(uint64(tag))
			_ = w.settleLocked(&op, err)
		}
	}
}

func (w *worker) completeLocked(c rdma.Completion) {
	if c.Tag == rdma.Unsignalled {
		w.fenceLocked(w.peers[c.To], c.Err)
		return
	}
	op := w.ops.drop(c.Tag)
	_ = w.settleLocked(&op, c.Err)
	if op.record && c.Err != nil {
		w.fenceLocked(w.peers[c.To], c.Err)
	}
	w.loseLocked(c.To, c.Err)
}

// loseLocked fences a peer if err says that the connection to it is broken. Without the fence
// nobody would notice that earlier WRITEs over that connection may be lost.
func (w *worker) loseLocked(to rdma.MachineID, err error) {
	if p := w.peerLocked(to); p != nil && errors.Is(err, rdma.ErrBroken) {
		w.fenceLocked(p, err)
	}
}

// settleLocked tells the waiters of op how it ended, and returns err.
func (w *worker) settleLocked(op *pendingOp, err error) error {
	switch {
	case op == nil:
	case op.wait != nil:
		op.wait.DoneLocked(err)
	case op.acks != nil:
		w.ackedLocked(op.acks, err)
	case op.refresh != nil:
		if op.refresh.refreshing = false; err == nil {
			op.refresh.log.Refreshed()
		}
	}
	return err
}

// ackedLocked counts one COMMIT-PRIMARY record that has arrived or failed.
func (w *worker) ackedLocked(a *acks, err error) {
	switch {
	case a.config != w.config && !sabotage.OldAcks.Skipped():
		return // acknowledgements of an older configuration are ignored
	case err == nil && a.first != nil:
		w.leaveLocked(a.first, commitstate.Truncating)
		a.first.first.DoneLocked(nil)
		a.first = nil
	case a.failed == nil:
		a.failed = err
	}
	w.ackedOneLocked(a)
}

// ackedOneLocked counts one record down. If one record failed, the transaction is left to recovery
// and never truncated here.
func (w *worker) ackedOneLocked(a *acks) {
	if a.open--; a.open > 0 {
		return
	}
	if a.first != nil {
		a.first.first.DoneLocked(a.failed)
		a.first = nil
	}
	if a.failed == nil && !sabotage.PrimaryAcks.Skipped() {
		w.finishLocked(a.seq, a.peers)
	}
}
