package txn

import "github.com/farmsql/farmsql/rdma"

// ops are a worker's RDMA operations that the provider has not completed yet. A
// provider that copies memory completes all before it returns, and then this is
// empty.
type ops struct {
	slots []pendingOp
	free  []uint32
}

// A pendingOp is told to whoever waits for it.
type pendingOp struct {
	wait *waiter
	acks *acks
	// refresh is the peer whose log's head is being read.
	refresh *peer
}

// acks follows the COMMIT-PRIMARY records of one transaction. The transaction
// may be truncated once all have arrived.
type acks struct {
	seq   uint64
	open  int
	peers []*peer
	// first is told of the first arrival: the caller may then be. If none
	// arrives, it is told of the last failure.
	first  *waiter
	failed bool
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

// poll takes what has been completed.
func (o *ops) poll(w *worker) {
	if len(o.slots) == len(o.free) {
		return
	}
	var cs [32]rdma.Completion
	for {
		n := w.q.Poll(cs[:])
		for _, c := range cs[:n] {
			o.complete(w, c)
		}
		if n < len(cs) {
			return
		}
	}
}

func (o *ops) complete(w *worker, c rdma.Completion) {
	if c.Tag == rdma.Unsignalled {
		if p := w.peers[c.To]; p.broken == nil {
			w.fence(p, c.Err)
		}
		return
	}
	op := o.drop(c.Tag)
	_ = w.settle(&op, c.Err)
}

// settle tells whoever waits for op how it ended, and returns err.
func (w *worker) settle(op *pendingOp, err error) error {
	switch {
	case op == nil:
	case op.wait != nil:
		op.wait.done(err)
	case op.acks != nil:
		w.acked(op.acks, err)
	case op.refresh != nil:
		if op.refresh.refreshing = false; err == nil {
			op.refresh.log.Refreshed()
		}
	}
	return err
}

// acked counts one COMMIT-PRIMARY record that has arrived, or failed to.
func (w *worker) acked(a *acks, err error) {
	a.failed = a.failed || err != nil
	if a.first != nil && (err == nil || a.open == 1) {
		a.first.done(err)
		a.first = nil
	}
	w.ackedOne(a)
}

// ackedOne counts down. A transaction of which one record failed is left to
// recovery and never truncated.
func (w *worker) ackedOne(a *acks) {
	if a.open--; a.open == 0 && !a.failed {
		w.finish(a.seq, a.peers)
	}
}
