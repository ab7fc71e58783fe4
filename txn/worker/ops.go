package worker

import (
	"errors"

	"github.com/farmsql/farmsql/rdma"
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

// A pendingOp says what waits for an operation's completion.
type pendingOp struct {
	wait *wait.Waiter
	acks *Acks
	// record says that a record is being written to the peer's log. If the write fails, for
	// whatever reason, the peer is fenced: only recovery can end the transaction.
	record bool
	// refresh is the peer whose log's head is being read.
	refresh *peer
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

// drop removes the operation with a tag, and returns it.
func (o *ops) drop(tag uint64) pendingOp {
	op := o.slots[tag]
	o.slots[tag] = pendingOp{}
	o.free = append(o.free, uint32(tag))
	return op
}

// pollLocked takes the completions. A failure may be among them although no operation is pending
// here: unsignalled operations have no slot.
func (w *Worker) pollLocked() {
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
func (w *Worker) failOpsLocked(err error) {
	o := &w.ops
	for tag := range o.slots {
		if o.slots[tag] != (pendingOp{}) {
			op := o.drop(uint64(tag))
			_ = w.settleLocked(&op, err)
		}
	}
}

func (w *Worker) completeLocked(c rdma.Completion) {
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
func (w *Worker) loseLocked(to rdma.MachineID, err error) {
	if p := w.peerLocked(to); p != nil && errors.Is(err, rdma.ErrBroken) {
		w.fenceLocked(p, err)
	}
}

// settleLocked tells the waiters of op how it ended, and returns err.
func (w *Worker) settleLocked(op *pendingOp, err error) error {
	switch {
	case op == nil: // no goroutine waits
	case op.wait != nil:
		op.wait.DoneLocked(err)
	case op.acks != nil:
		w.ackedLocked(op.acks, err)
	case op.refresh != nil:
		op.refresh.refreshing = false
		if err == nil {
			op.refresh.log.Refreshed()
		}
	}
	return err
}
