package worker

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/message"
)

// ErrHeld means that recovery still needs the records in a peer's logs, so that the peer cannot get
// new logs yet.
var ErrHeld = errors.New("txn: the logs of the machine are being recovered")

// Listen prepares the logs and message queues that one peer, or this machine itself, writes to. It
// returns the greeting that the peer passes to Connect. If it is called again, because the peer has
// started another life or was cut off, it replaces them: WRITEs to the old ones no longer have an
// effect.
func (m *Machine) Listen(peer rdma.MachineID) (message.Greeting, error) {
	g := message.Greeting{Epoch: m.epoch.Load()}
	for _, w := range m.workers {
		greeting, err := m.listenAt(w, peer)
		if err != nil {
			return g, fmt.Errorf("txn: worker %d cannot listen to machine %d: %w", w.ID, peer, err)
		}
		g.Workers = append(g.Workers, greeting)
	}
	m.recovery.EndLoans()
	return g, nil
}

// listenAt is Listen at one worker.
func (m *Machine) listenAt(w *Worker, peer rdma.MachineID) (g message.WorkerGreeting, err error) {
	m.recovery.WithLedgers(func() {
		w.Lock()
		defer w.Unlock()
		g, err = w.listenLocked(peer)
	})
	return g, err
}

// Connect connects to a peer whose Listen returned g. Call Listen for the peer first.
func (m *Machine) Connect(peer rdma.MachineID, g message.Greeting) error {
	if len(g.Workers) != len(m.workers) {
		return fmt.Errorf("%w: of %d workers, this machine has %d", message.ErrBadGreeting, len(g.Workers), len(m.workers))
	}
	for i, w := range m.workers {
		w.Lock()
		w.connectLocked(peer, g.Workers[i])
		w.Unlock()
	}
	m.joinEpoch(g.Epoch)
	m.Routes.Renew() // wakes operations that wait until a machine can be reached
	return nil
}

// Connected reports whether this machine has a working connection to a peer.
func (m *Machine) Connected(peer rdma.MachineID) bool {
	for _, w := range m.workers {
		w.Lock()
		p := w.peerLocked(peer)
		ok := p != nil && p.log != nil && p.broken == nil
		w.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

// joinEpoch moves this machine to the epoch of the others, if they are ahead and nothing is open here, in
// an even or an odd epoch.
func (m *Machine) joinEpoch(epoch uint64) {
	current := m.epoch.Load()
	if epoch > current && m.epochClosed(0) && m.epochClosed(1) {
		m.epoch.CompareAndSwap(current, epoch)
	}
}
