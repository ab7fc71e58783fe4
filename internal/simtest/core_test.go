package simtest

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// sparing returns the options of a seed with overlapping faults that spare a sufficient majority.
// In the end some of the faults last for good.
func sparing(seed uint64) Options {
	o := Draw(seed).Overlapping()
	o.Overlap.Spare, o.Overlap.Core = true, true
	return o
}

// Machines that suffice go on, no matter which faults last for good.
func TestCore(t *testing.T) {
	var total Result
	for seed := uint64(1); seed <= 12; seed++ {
		o := sparing(seed)
		o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(f Fault) bool { return f == LinkCut || f == Flap })
		r := Run(o)
		if total.Add(r); r.Err != nil {
			t.Fatalf("%v\n%v", r.Err, o)
		}
		runtime.GC() // unmaps the run's memory
	}
	t.Log(total)
}

// The bounds catch code that is too slow: three seconds in every recovery, calls that are not
// repeated, lost wake-ups.
func TestTooSlowIsCaught(t *testing.T) {
	for _, c := range []struct {
		name  string
		with  func(*Options)
		seeds uint64
	}{
		{"a sleep in every recovery", sleepInRecovery, 3},
		{"calls that are not repeated", func(o *Options) { tamper(o, func(m *members) { m.wrapNIC = notRepeating }) }, 40},
		{"wake-ups that are lost", func(o *Options) { tamper(o, func(m *members) { m.wrapClock = loseWakeUps }) }, 3},
		{"leases whose end is noticed late", func(o *Options) {
			tamper(o, noticeLate)
			o.Overlap = &Overlap{Kinds: []Fault{Pause}, Open: 1, Max: 4, Hold: 100 * time.Millisecond, Spare: true}
		}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= c.seeds; seed++ {
				o := Draw(seed)
				o.Farm.Machines, o.Farm.Replicas, o.Domains, o.Clients = 5, 3, 5, 1
				o.Faults, o.Duration, o.Calm, o.World.Loss = []Fault{Kill}, 20*time.Millisecond, time.Millisecond, lossMax
				c.with(&o)
				r := Run(o)
				runtime.GC() // unmaps the run's memory
				if r.Err != nil {
					what, _, _ := strings.Cut(r.Err.Error(), "\n")
					t.Logf("caught with seed %d: %s", seed, what)
					return
				}
			}
			t.Errorf("not caught with %d seeds", c.seeds)
		})
	}
}

// sleepInRecovery makes every machine sleep once its logs are drained.
func sleepInRecovery(o *Options) {
	o.New = func(w *sim.World, cfg farm.Config, h Hooks) Cluster {
		recovering := h.Recovering
		h.Recovering = func(i int, s recovery.Step) {
			if s == recovery.StepDrained {
				w.Machine(rdma.MachineID(i)).Process().Sleep(3 * time.Second)
			}
			recovering(i, s)
		}
		return NewMembers(w, cfg, h)
	}
}

func tamper(o *Options, with func(*members)) {
	o.New = func(w *sim.World, cfg farm.Config, h Hooks) Cluster {
		c := NewMembers(w, cfg, h).(*members)
		with(c)
		return c
	}
}

// noticeLate makes machines notice expired leases three lease times late, and hear of deaths in no
// other way.
func noticeLate(m *members) {
	m.wrapExpired = func(expired func(rdma.MachineID)) func(rdma.MachineID) {
		return func(x rdma.MachineID) {
			m.world.Outside().Sleep(3 * leaseTime)
			expired(x)
		}
	}
	m.wrapNIC = func(n rdma.NIC) rdma.NIC { return unknowing{n} }
}

type unknowing struct{ rdma.NIC }

func (n unknowing) Deaths(func(rdma.MachineID)) {}

// notRepeating returns a card that sends no datagram twice.
func notRepeating(n rdma.NIC) rdma.NIC { return onceNIC{n, make(map[string]bool)} }

type onceNIC struct {
	rdma.NIC
	sent map[string]bool
}

func (n onceNIC) Datagram(to rdma.MachineID, b []byte) error {
	if n.sent[string(b)] {
		return nil
	}
	n.sent[string(b)] = true
	return n.NIC.Datagram(to, b)
}

// loseWakeUps returns a clock that does not set one event in two hundred.
func loseWakeUps(c clock.Clock) clock.Clock { return &deafClock{Clock: c} }

type deafClock struct {
	clock.Clock
	sets int
}

func (c *deafClock) NewEvent() clock.Event { return deafEvent{c.Clock.NewEvent(), c} }

type deafEvent struct {
	clock.Event
	of *deafClock
}

func (e deafEvent) Set() {
	if e.of.sets++; e.of.sets%200 != 0 {
		e.Event.Set()
	}
}
