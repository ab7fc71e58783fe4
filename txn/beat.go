package txn

import (
	"context"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/message"
)

// overdueBeats is for how many beats a peer that is connected may owe this machine a
// LOCK-REPLY or another answer that takes no time: some lease times. It is no bound on
// how long a transaction takes, but on how long nobody looks why.
const overdueBeats = 16

// Beat goes through every worker as all must that want something of it, and returns
// when each has let it pass: one that is stuck holds it up, however busy workers do
// not. Peers that owe an answer since overdueBeats beats are told to Events.Silent,
// again after as many more. Functions that were shipped, and LOCKs of large transactions,
// may take any time: after as long their machine is asked something that takes none. It is
// called at even intervals, by one goroutine.
func (m *Machine) Beat() {
	silent := make(map[rdma.MachineID]bool)
	for _, w := range m.workers {
		w.lock()
		w.beatLocked(silent)
		w.ringPeersLocked()
		w.unlock()
	}
	if f := m.cfg.Events.Silent; f != nil {
		for _, id := range slices.Sorted(maps.Keys(silent)) {
			f(id)
		}
	}
}

// beatLocked adds the machines whose answers are overdue to silent.
func (w *worker) beatLocked(silent map[rdma.MachineID]bool) {
	w.beats++
	if w.stopped {
		return
	}
	ask := make(map[rdma.MachineID]bool)
	for _, c := range w.commits { // any order
		switch {
		case !w.isOverdueLocked(&c.since):
		case c.large != nil: // locking that much may take long
			c.owingLocked(ask)
		default:
			c.owingLocked(silent)
		}
	}
	for _, c := range w.calls { // any order
		switch {
		case !w.isOverdueLocked(&c.since):
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

// isOverdueLocked says whether something waits since overdueBeats beats, and has it wait anew.
func (w *worker) isOverdueLocked(since *uint64) bool {
	if w.beats-*since < overdueBeats {
		return false
	}
	*since = w.beats
	return true
}

// owingLocked adds to silent the primaries that have not replied to LOCK.
func (c *commit) owingLocked(silent map[rdma.MachineID]bool) {
	for i := range c.parts {
		if p := &c.parts[i]; p.lockWrites > 0 && !p.replied && p.peer != nil {
			silent[p.machine] = true
		}
	}
}

// pingLocked asks a peer for an answer that takes no time, unless it owes one already.
func (w *worker) pingLocked(to rdma.MachineID) {
	p := w.peerLocked(to)
	if p == nil || p.broken != nil {
		return // who waits has been told
	}
	for _, c := range w.calls { // any order
		if c.to == to && c.prompt {
			return
		}
	}
	c := &call{to: to, prompt: true, wait: w.m.newWaiter()}
	c.wait.add(1) // nobody waits
	msg := message.Message{Kind: message.Request, B: uint16(handlerPing), Tag: w.openCallLocked(c)}
	if err := w.sendLocked(p, &msg); err != nil {
		w.fenceLocked(p, err) // which fails the call
	}
}

func handlePing(context.Context, []byte) ([]byte, error) { return nil, nil }
