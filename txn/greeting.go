package txn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
)

// A Greeting tells a peer where to write: the location of the log and the message queue of each
// worker.
type Greeting struct {
	epoch   uint64
	workers []greeting
}

type greeting struct {
	life          uint32
	log, messages ring.State
}

// ErrHeld means that recovery still needs the records in a peer's logs, so that the peer cannot get
// new logs yet.
var ErrHeld = errors.New("txn: the logs of the machine are being recovered")

// errBadGreeting means that bytes are no greeting.
var errBadGreeting = errors.New("txn: bad greeting")

// Listen prepares the logs and message queues that one peer writes to, which may be this machine
// itself, and returns what the peer passes to Connect. When it is called again for a peer that has
// started another life or was cut off, it makes them anew: WRITEs to the old ones have no effect
// any more.
func (m *Machine) Listen(peer rdma.MachineID) (Greeting, error) {
	g := Greeting{epoch: m.epoch.Load()}
	for _, w := range m.workers {
		one, err := m.listenAt(w, peer)
		if err != nil {
			return g, fmt.Errorf("txn: worker %d cannot listen to machine %d: %w", w.id, peer, err)
		}
		g.workers = append(g.workers, one)
	}
	m.recovery.EndLoans()
	return g, nil
}

// listenAt is Listen at one worker.
func (m *Machine) listenAt(w *worker, peer rdma.MachineID) (g greeting, err error) {
	m.recovery.WithLedgers(func() {
		w.lock()
		defer w.unlock()
		g, err = w.listenLocked(peer)
	})
	return g, err
}

// Connect connects to a peer that returned g from Listen, after listening to it.
func (m *Machine) Connect(peer rdma.MachineID, g Greeting) error {
	if len(g.workers) != len(m.workers) {
		return fmt.Errorf("%w: of %d workers, this machine has %d", errBadGreeting, len(g.workers), len(m.workers))
	}
	for i, w := range m.workers {
		w.lock()
		w.connectLocked(peer, g.workers[i])
		w.unlock()
	}
	m.joinEpoch(g.epoch)
	m.routes.Renew() // wakes operations that wait until a machine can be reached
	return nil
}

// Connected reports whether this machine has a working connection to a peer.
func (m *Machine) Connected(peer rdma.MachineID) bool {
	for _, w := range m.workers {
		w.lock()
		p := w.peerLocked(peer)
		ok := p != nil && p.log != nil && p.broken == nil
		w.unlock()
		if !ok {
			return false
		}
	}
	return true
}

// joinEpoch moves this machine to the epoch of the others, if nothing is open here.
func (m *Machine) joinEpoch(epoch uint64) {
	current := m.epoch.Load()
	if epoch > current && m.epochClosed(0) && m.epochClosed(1) {
		m.epoch.CompareAndSwap(current, epoch)
	}
}

// Append encodes the greeting after b, in the protocol version that the two machines speak with
// each other. From protocol.Ranges on, the encoding begins with a word that holds the version.
func (g *Greeting) Append(b []byte, version protocol.Version) []byte {
	if version >= protocol.Ranges {
		b = binary.LittleEndian.AppendUint64(b, uint64(version))
	}
	b = binary.LittleEndian.AppendUint64(b, g.epoch)
	for _, w := range g.workers {
		b = binary.LittleEndian.AppendUint64(b, uint64(w.life))
		for _, s := range []ring.State{w.log, w.messages} {
			for _, v := range []uint64{s.Nonce, s.Bytes, s.Head, s.Tail} {
				b = binary.LittleEndian.AppendUint64(b, v)
			}
		}
	}
	return b
}

// greetingBytes is the encoded size of one worker's part.
const greetingBytes = 9 * 8

// DecodeGreeting decodes what Append encoded in the given protocol version.
func DecodeGreeting(b []byte, version protocol.Version) (g Greeting, err error) {
	if version >= protocol.Ranges {
		if len(b) < 8 {
			return g, fmt.Errorf("%w: %d bytes", errBadGreeting, len(b))
		}
		if said := binary.LittleEndian.Uint64(b); said != uint64(version) {
			return g, fmt.Errorf("%w: it is of version %d of the protocol, the two machines speak version %d: start the one with the older farmsql anew, with the newer one",
				errBadGreeting, said, version)
		}
		b = b[8:]
	}
	if len(b) < 8 || (len(b)-8)%greetingBytes != 0 {
		return g, fmt.Errorf("%w: %d bytes", errBadGreeting, len(b))
	}
	word := func() uint64 { v := binary.LittleEndian.Uint64(b); b = b[8:]; return v }
	state := func() ring.State { return ring.State{Nonce: word(), Bytes: word(), Head: word(), Tail: word()} }
	g.epoch = word()
	for len(b) > 0 {
		life := word()
		if life > math.MaxUint32 {
			return g, fmt.Errorf("%w: life %d", errBadGreeting, life)
		}
		w := greeting{life: uint32(life), log: state(), messages: state()}
		for _, s := range []ring.State{w.log, w.messages} {
			if s.Bytes < ring.BytesMin/2 || s.Bytes > ring.BytesMax || s.Bytes%8 != 0 || s.Tail < s.Head || s.Tail-s.Head > s.Bytes {
				return g, fmt.Errorf("%w: ring %+v", errBadGreeting, s)
			}
		}
		g.workers = append(g.workers, w)
	}
	return g, nil
}
