package sim

import (
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// Costs say how long one processor is busy with something. The zero value costs
// nothing.
type Costs struct {
	Operation time.Duration // to post a READ or a WRITE and to take its completion
	Datagram  time.Duration // to send one, and to receive one
	// Kilobyte is the cost, at the receiver, of each 1024 bytes of a datagram.
	Kilobyte time.Duration
	// Yield is for how long a routine that yields stays away besides: a thread with
	// other things to do does not look all the time whether one of them goes on.
	Yield time.Duration
}

// A turn is what a routine does from one wait to the next. It takes no virtual time itself. On
// a machine whose processors are limited it occupies one of them, and its costs add up: those
// of Process.Work and those of its network card. The effects of the turn happen later by that
// sum, and its processor is busy until then. Turns that find no processor free queue up.
//
// So a turn reads and changes memory at the moment at which it begins, and others see its
// effects after its costs, which is a possible order of events.
type turn struct {
	f func()
	// aside is on a processor of its own.
	aside bool
}

// Work has a processor be busy for d more with the turn that is running, which
// is one of the process's.
func (p *Process) Work(d time.Duration) {
	if p.isLimited() && !p.dead {
		p.world.worked += d
	}
}

// isLimited says whether processor time counts. That of the outside does not.
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

// release gives a processor to the next waiting turn. A turn that costs nothing leaves it to
// the turn after it.
func (p *Process) release() {
	p.busy--
	for len(p.queued) > 0 && p.busy < p.world.options.Processors {
		f := p.queued[0]
		p.queued = p.queued[1:]
		p.occupy(f)
	}
}

// time is when the running turn has come to where it is.
func (w *World) time() time.Duration { return w.now + w.worked }

// sent returns when the card has sent so many bytes, one thing after the other.
func (n *nic) sent(bytes int) time.Duration {
	w := n.process.world
	if w.options.Bandwidth == 0 {
		return w.time()
	}
	n.sending = max(n.sending, w.time()) + time.Duration(float64(bytes)/w.options.Bandwidth*1e9)
	return n.sending
}

// An Aside is what runs beside a process's other routines, on a processor of its
// own, with datagrams of its own, as FaRM's lease manager does (SOSP'15 section
// 5.1). It is a clock.Clock whose routines do not wait for processors.
type Aside struct{ *Process }

// Go implements clock.Clock.
func (a Aside) Go(f func()) { a.world.start(a.Process, yieldMin+a.world.upTo(yieldSpan), f, true) }

// AfterFunc implements clock.Clock.
func (a Aside) AfterFunc(d time.Duration, f func()) clock.Timer { return a.afterFunc(d, f, true) }

// NIC returns the process's card, which must have joined, for datagrams to and from
// what is aside at other machines.
func (a Aside) NIC() rdma.NIC { return asideNIC{a.nic} }

type asideNIC struct{ *nic }

func (n asideNIC) Datagram(to rdma.MachineID, b []byte) error { return n.datagram(to, b, 1) }

func (n asideNIC) Datagrams(f func(from rdma.MachineID, b []byte)) { n.datagrams(f, 1) }
