package sim

import (
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// Costs are the times for which operations occupy a processor. The zero value costs nothing.
type Costs struct {
	Operation time.Duration // time to post a READ or a WRITE and to take its completion
	Datagram  time.Duration // time to send a datagram, and time to receive one
	// Kilobyte is the cost, at the receiver, of each 1024 bytes of a datagram.
	Kilobyte time.Duration
	// Yield is the additional time after which a yielding routine continues: a thread that has
	// other work does not check all the time.
	Yield time.Duration
}

// A turn is the code that a routine runs between two waits. Its code takes no virtual time.
// On a machine with limited processors it occupies one of them, for the sum of its costs:
// those of Process.Work and of its network card. If no processor is free, it waits in a queue.
//
// A turn reads and changes memory when it begins. Its messages, wake-ups and other effects on others
// happen when its costs are over. A real machine could have had the same order of events.
type turn struct {
	f func()
	// aside turns have their own processor.
	aside bool
}

// Work keeps the processor of the running turn busy for d more. The turn must be one of the process.
func (p *Process) Work(d time.Duration) {
	if p.isLimited() && !p.dead {
		p.world.worked += d
	}
}

// isLimited reports whether the process's processors are limited. The outside's are not.
func (p *Process) isLimited() bool { return p.machine != nil && p.world.options.Processors > 0 }

// take runs a turn as soon as a processor is free.
func (p *Process) take(t turn) {
	switch {
	case t.aside || !p.isLimited():
		t.f()
	case p.busy == p.world.options.Processors:
		p.queued = append(p.queued, t.f)
	default:
		p.occupy(t.f)
	}
}

// occupy runs a turn on a free processor.
func (p *Process) occupy(f func()) {
	w := p.world
	p.busy++
	f()
	d := w.worked
	w.worked = 0
	if d == 0 {
		p.busy--
		return
	}
	w.mix(uint64(d))
	w.after(d, p.release)
}

// release gives a processor to the next waiting turn. If that turn costs nothing, the one
// after it follows at once.
func (p *Process) release() {
	p.busy--
	for len(p.queued) > 0 && p.busy < p.world.options.Processors {
		f := p.queued[0]
		p.queued = p.queued[1:]
		p.occupy(f)
	}
}

// time returns the virtual time that the running turn has reached.
func (w *World) time() time.Duration { return w.now + w.worked }

// sent returns the time at which the card will have sent this many bytes and have worked on this many packets. It
// works on them after all that were posted before; sending bytes and working on packets do not delay each other.
func (n *nic) sent(bytes, packets int) time.Duration {
	w := n.process.world
	if w.options.Bandwidth > 0 {
		n.sending = max(n.sending, w.time()) + time.Duration(float64(bytes)/w.options.Bandwidth*1e9)
	}
	if w.options.Packet > 0 {
		n.working = max(n.working, w.time()) + time.Duration(packets)*w.options.Packet
	}
	return max(w.time(), n.sending, n.working)
}

// An Aside runs routines beside the process's others, on its own processor and with its own
// datagrams, as FaRM's lease manager does (SOSP'15 section 5.1). It is a clock.Clock whose
// routines do not wait for processors.
type Aside struct{ *Process }

// Go implements clock.Clock.
func (a Aside) Go(f func()) { a.world.start(a.Process, yieldMin+a.world.upTo(yieldSpan), f, true) }

// AfterFunc implements clock.Clock.
func (a Aside) AfterFunc(d time.Duration, f func()) clock.Timer { return a.afterFunc(d, f, true) }

// NIC returns the process's card for datagrams between Asides. The process must have called Join
// before.
func (a Aside) NIC() rdma.NIC { return asideNIC{a.nic} }

type asideNIC struct{ *nic }

func (n asideNIC) Datagram(to rdma.MachineID, b []byte) error { return n.datagram(to, b, asidePort) }

func (n asideNIC) Datagrams(f func(from rdma.MachineID, b []byte)) { n.datagrams(f, asidePort) }
