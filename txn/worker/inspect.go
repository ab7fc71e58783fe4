package worker

import (
	"context"
	"fmt"
	"maps"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
)

// An Inspection lets the tests of the packages above look into a machine below its transactions, and
// disturb it. Nothing else uses it.
type Inspection struct{ m *Machine }

// Inspect returns the machine's inspection.
func (m *Machine) Inspect() Inspection { return Inspection{m} }

// OnFenced replaces Events.Fenced. Nothing may be going on.
func (i Inspection) OnFenced(f func(rdma.MachineID, error)) { i.m.cfg.Events.Fenced = f }

// OnSilent replaces Events.Silent. Nothing may be going on.
func (i Inspection) OnSilent(f func(rdma.MachineID)) { i.m.cfg.Events.Silent = f }

// Workers returns the machine's workers.
func (i Inspection) Workers() []*Worker { return i.m.workers }

// Queue returns the queue of a worker, whose lock the caller holds.
func (i Inspection) Queue(worker int) rdma.Queue { return i.m.workers[worker].q }

// WrapQueue puts the result of wrap between a worker and its queue. Nothing may be pending on the
// queue.
func (i Inspection) WrapQueue(worker int, wrap func(rdma.Queue) rdma.Queue) {
	w := i.m.workers[worker]
	w.Lock()
	defer w.Unlock()
	w.q.Queue = wrap(w.q.Queue)
}

// Log returns the sender of the log that a worker writes to a peer. The caller holds the worker's
// lock.
func (i Inspection) Log(worker int, peer rdma.MachineID) *ring.Sender {
	return i.m.workers[worker].peers[peer].log
}

// AppendLog appends anything to the log that a worker writes to a peer, and rings it.
func (i Inspection) AppendLog(worker int, to rdma.MachineID, b []byte) error {
	return i.append(worker, to, func(p *peer) *ring.Sender { return p.log }, b)
}

// AppendMessage appends anything to the message queue that a worker writes to a peer, and rings it.
func (i Inspection) AppendMessage(worker int, to rdma.MachineID, b []byte) error {
	return i.append(worker, to, func(p *peer) *ring.Sender { return p.msgs }, b)
}

func (i Inspection) append(worker int, to rdma.MachineID, at func(*peer) *ring.Sender, b []byte) error {
	w := i.m.workers[worker]
	w.Lock()
	defer w.Unlock()
	_, _, err := at(w.peers[to]).Append(rdma.Unsignalled, b)
	w.ringLocked(w.peers[to])
	w.RingPeersLocked()
	return err
}

// Broken returns why all input from a peer of a worker is ignored, or nil.
func (i Inspection) Broken(worker int, peer rdma.MachineID) error {
	w := i.m.workers[worker]
	w.Lock()
	defer w.Unlock()
	return w.peers[peer].broken
}

// Unsent returns how many messages to a peer of a worker wait for room.
func (i Inspection) Unsent(worker int, peer rdma.MachineID) int {
	w := i.m.workers[worker]
	w.Lock()
	defer w.Unlock()
	return len(w.peers[peer].outbox)
}

// LastID returns the identifier of the transaction whose commit the worker has begun most recently.
func (i Inspection) LastID(worker int) record.ID {
	w := i.m.workers[worker]
	w.Lock()
	defer w.Unlock()
	return record.ID{Config: w.config, Machine: i.m.cfg.ID, Worker: w.ID, Seq: w.window.Next - 1}
}

// Received returns the memory of the log that a sender's worker writes to this machine.
func (i Inspection) Received(sender rdma.MachineID, worker int) (*nvram.Memory, error) {
	return i.m.cfg.Log(sender, worker)
}

// Serving returns how many goroutines run for peers.
func (i Inspection) Serving() int { return int(i.m.serving.Load()) }

// Waits reports whether anything waits for an answer of a peer.
func (i Inspection) Waits() bool {
	for _, w := range i.m.workers {
		w.Lock()
		n := len(w.commits) + len(w.calls)
		w.Unlock()
		if n > 0 {
			return true
		}
	}
	return false
}

// Reserve reserves storage for a part of a replica, as the region's primary asks a backup to.
func (i Inspection) Reserve(r message.Reservation) error {
	_, err := i.m.handleReserve(context.Background(), r.Encode())
	return err
}

// ForgetAnnexes makes the machine behave like an earlier version that has no annexes.
func (i Inspection) ForgetAnnexes() {
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	handlers := maps.Clone(*i.m.handlers.Load())
	delete(handlers, HandlerAnnex)
	delete(handlers, handlerDropAnnex)
	i.m.handlers.Store(&handlers)
}

// Idle returns an error that names anything left over although nothing is going on: reserved log
// space, transactions that are not truncated, operations or calls that nobody waits for.
func (i Inspection) Idle() error {
	for _, w := range i.m.workers {
		if err := w.idle(); err != nil {
			return fmt.Errorf("machine %d, worker %d: %w", i.m.cfg.ID, w.ID, err)
		}
	}
	for k := range i.m.stripes {
		for epoch := range uint64(2) {
			if n := i.m.stripes[k].open(epoch); n != 0 {
				return fmt.Errorf("machine %d: %d operations are open", i.m.cfg.ID, n)
			}
		}
	}
	return nil
}

// idle returns an error that says what the worker has still to do; nil if that is nothing.
func (w *Worker) idle() error {
	w.Lock()
	defer w.Unlock()
	if n := w.self.Reserved(); n != 0 {
		return fmt.Errorf("%d bytes of the own log are reserved", n)
	}
	if w.window.Low != w.window.Next {
		return fmt.Errorf("transactions from %d to %d are not truncated", w.window.Low, w.window.Next)
	}
	if head, tail := w.self.Log.Head(), w.self.Log.Tail(); head != tail {
		return fmt.Errorf("own log is used from %d to %d", head, tail)
	}
	if len(w.commits) != 0 || len(w.calls) != 0 || len(w.ops.slots) != len(w.ops.free) {
		return fmt.Errorf("%d commits, %d calls and %d operations open", len(w.commits), len(w.calls), len(w.ops.slots)-len(w.ops.free))
	}
	for _, p := range w.peers {
		if p == nil || p.broken != nil {
			continue
		}
		if n := p.log.Reserved(); n != 0 {
			return fmt.Errorf("%d bytes of the log at machine %d are reserved", n, p.id)
		}
		if n := len(p.truncated) + len(p.far); n != 0 || len(p.outbox) != 0 {
			return fmt.Errorf("%d truncations and %d messages for machine %d are left", n, len(p.outbox), p.id)
		}
		if len(p.in.Transactions()) != 0 {
			return fmt.Errorf("%d transactions of machine %d are not truncated", len(p.in.Transactions()), p.id)
		}
	}
	return nil
}
