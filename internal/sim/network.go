package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// network is the state of the links between machines.
type network struct {
	nics   map[rdma.MachineID]*nic
	cut    map[link]int // number of Cuts that have not been mended
	spikes map[link]spike
	storm  Storm
}

// A link is one direction between two machines.
type link struct{ from, to rdma.MachineID }

// A spike delays everything sent on a link before until. Each delay is random, at most extra.
type spike struct{ until, extra time.Duration }

func (n *network) init() {
	n.nics = make(map[rdma.MachineID]*nic)
	n.cut = make(map[link]int)
	n.spikes = make(map[link]spike)
}

// Cut loses everything sent from one machine to another from now on. A link that is cut
// twice, by overlapping faults, has to be mended twice.
func (w *World) Cut(from, to rdma.MachineID) {
	w.Note(fmt.Sprintf("cut %d to %d", from, to))
	w.network.cut[link{from, to}]++
}

// Mend undoes one Cut, if there is one.
func (w *World) Mend(from, to rdma.MachineID) {
	w.Note(fmt.Sprintf("mend %d to %d", from, to))
	w.network.cut[link{from, to}] = max(0, w.network.cut[link{from, to}]-1)
}

// Up reports whether a message sent now from one machine reaches the other.
func (w *World) Up(from, to rdma.MachineID) bool { return w.isUp(from, to) }

// Breaking reports whether some living machine has still to be told that one of its connections has
// failed.
func (w *World) Breaking() bool {
	for _, n := range w.network.nics { // the order of the cards has no effect
		for _, q := range n.queues {
			if q != nil && slices.ContainsFunc(q.conns, (*conn).isBreaking) {
				return true
			}
		}
	}
	return false
}

// isBreaking reports whether failed operations of the connection are still to be reported, or the
// bell that announces the reports is still to ring.
func (c *conn) isBreaking() bool {
	return c != nil && c.broken && (len(c.flying) > 0 || (c.pending > 0 && c.from.belled))
}

// Lose sets how many of a thousand datagrams are lost from now on.
func (w *World) Lose(loss int) { w.options.Loss = loss }

// Spike delays everything that one machine sends to another during the next d. Each delay is random,
// between zero and extra.
func (w *World) Spike(from, to rdma.MachineID, d, extra time.Duration) {
	w.Note(fmt.Sprintf("spike %d to %d, %v", from, to, extra))
	w.network.spikes[link{from, to}] = spike{w.now + d, extra}
}

// isUp reports whether a message sent now arrives at the other end of the link.
func (w *World) isUp(from, to rdma.MachineID) bool { return w.network.cut[link{from, to}] <= 0 }

// delay draws how long a message takes.
func (w *World) delay(from, to rdma.MachineID) time.Duration {
	if from == to {
		return 50*time.Nanosecond + w.upTo(500*time.Nanosecond)
	}
	if w.options.Steady {
		return w.options.Latency
	}
	d := w.options.Latency + w.upTo(w.options.Latency)
	if w.rng.IntN(32) == 0 {
		d += w.upTo(20 * w.options.Latency)
	}
	if s, ok := w.network.spikes[link{from, to}]; ok && w.now < s.until {
		d += w.upTo(s.extra)
	}
	return d
}

// datagramsMax bounds the datagrams on their way to one machine.
const datagramsMax = 1024

// Datagram implements rdma.NIC.
func (n *nic) Datagram(to rdma.MachineID, b []byte) error { return n.datagram(to, b, processPort) }

// datagram sends a datagram to a port of a peer. It may be lost, late, or arrive twice.
func (n *nic) datagram(to rdma.MachineID, b []byte, port int) error {
	w := n.process.world
	switch {
	case n.process.dead:
		return nil
	case n.closed:
		return &rdma.Error{Op: rdma.OpDatagram, To: to, Bytes: len(b), Err: rdma.ErrClosed}
	case len(b) > rdma.DatagramBytesMax:
		return &rdma.Error{Op: rdma.OpDatagram, To: to, Bytes: len(b), Err: rdma.ErrRange}
	}
	from := n.id
	peer := w.network.nics[to]
	if peer == nil || peer.ports[port].receive == nil || peer.ports[port].arriving >= datagramsMax ||
		!w.isUp(from, to) || w.rng.IntN(1000) < w.options.Loss {
		return nil
	}
	b = append([]byte(nil), b...)
	w.mix(uint64(from)<<16|uint64(to), uint64(len(b)))
	n.process.Work(w.options.Costs.Datagram)
	sent := n.sent(len(b), 1)
	n.fly(peer, b, port, sent+w.delay(from, to)+w.late())
	if w.isDoubled() {
		n.fly(peer, b, port, sent+w.delay(from, to)+w.late())
	}
	return nil
}

// fly makes a datagram arrive at a port of a peer at the given time, unless the peer or the link is gone by
// then.
func (n *nic) fly(peer *nic, b []byte, port int, when time.Duration) {
	w, from, to := n.process.world, n.id, peer.id
	peer.ports[port].arriving++
	w.at(when, func() {
		if peer.process.dead || peer.closed || !w.isUp(from, to) {
			peer.ports[port].arriving--
			return
		}
		w.tell("datagram of %d bytes from %d to %d", len(b), from, to)
		isAside := port == asidePort
		w.start(peer.process, 0, func() { peer.arrive(from, b, port) }, isAside)
	})
}

// arrive hands a datagram to the receiver of a port, if there is one.
func (n *nic) arrive(from rdma.MachineID, b []byte, port int) {
	costs := &n.process.world.options.Costs
	n.ports[port].arriving--
	if f := n.ports[port].receive; f != nil && !n.closed {
		n.process.Work(costs.Datagram + costs.Kilobyte*time.Duration(len(b))/1024)
		f(from, b)
	}
}

// Datagrams implements rdma.NIC.
func (n *nic) Datagrams(f func(from rdma.MachineID, b []byte)) { n.datagrams(f, processPort) }

// datagrams sets the receiver of a port.
func (n *nic) datagrams(f func(from rdma.MachineID, b []byte), port int) {
	if !n.closed {
		n.ports[port].receive = f
	}
}
