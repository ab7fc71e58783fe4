package worker

import (
	"context"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/wait"
)

// OverdueBeats is how many beats, several lease times, a connected peer may take for a LOCK-REPLY
// or another answer that takes no time. It does not bound how long a transaction takes: it bounds
// how long a missing answer goes unexamined.
const OverdueBeats = 16

// Beat takes and releases each worker's lock, as every user of a worker does, and returns when it
// has had all of them: a stuck worker blocks it, a busy one does not. It reports peers that have
// owed an answer for OverdueBeats beats to Events.Silent, and again after as many more. Shipped
// functions, and LOCKs of large transactions, may take any time: after OverdueBeats beats it sends
// their machine a request that takes no time (a ping). It is called at about even intervals; two calls
// may overlap.
func (m *Machine) Beat() {
	silent := make(map[rdma.MachineID]bool)
	for _, w := range m.workers {
		w.Lock()
		w.beatLocked(silent)
		w.RingPeersLocked()
		w.Unlock()
	}
	if f := m.cfg.Events.Silent; f != nil {
		for _, id := range slices.Sorted(maps.Keys(silent)) {
			f(id)
		}
	}
}

// beatLocked adds to silent the machines that owe an overdue answer which takes no time, and pings the
// machines that owe an overdue answer which may take any time.
func (w *Worker) beatLocked(silent map[rdma.MachineID]bool) {
	w.beats++
	if w.stopped {
		return
	}
	ask := make(map[rdma.MachineID]bool)
	for _, c := range w.commits { // any order
		switch {
		case !w.isOverdueLocked(&c.since): // not overdue yet
		case c.IsLarge: // locking that many objects may take long
			c.owingLocked(ask)
		default:
			c.owingLocked(silent)
		}
	}
	for _, c := range w.calls { // any order
		switch {
		case !w.isOverdueLocked(&c.since): // not overdue yet
		case c.prompt:
			silent[c.to] = true
		default:
			ask[c.to] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ask)) {
		w.pingLocked(id)
	}
}

// isOverdueLocked reports whether a wait is overdue, and if so restarts it. began points to the beat at
// which the wait began.
func (w *Worker) isOverdueLocked(began *uint64) bool {
	if w.beats-*began < OverdueBeats {
		return false
	}
	*began = w.beats
	return true
}

// pingLocked sends a peer a request that takes no time to answer, unless one is pending already.
func (w *Worker) pingLocked(to rdma.MachineID) {
	p := w.peerLocked(to)
	if p == nil || p.broken != nil {
		return // goroutines that wait for this peer have their error already
	}
	for _, c := range w.calls { // any order
		if c.to == to && c.prompt {
			return
		}
	}
	c := &call{to: to, prompt: true, wait: wait.NewWaiter(w.m.cfg.Clock)}
	c.wait.Add(1) // no caller waits for the reply
	msg := message.Message{Kind: message.Request, B: uint16(handlerPing), Tag: w.openCallLocked(c)}
	if err := w.sendLocked(p, &msg); err != nil {
		w.fenceLocked(p, err) // fails the call as well
	}
}

func handlePing(context.Context, []byte) ([]byte, error) { return nil, nil }
