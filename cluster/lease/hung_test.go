package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
)

// exchange lets time pass from one moment to another. Each message arrives when it is sent. It
// returns the time at which one side first suspected the other, or 0.
func exchange(cm, m *core, from, to int64, beat func(now int64)) (atCM, atMachine int64) {
	for now := from; now < to; now++ {
		beat(now)
		isDue, expired := cm.tick(now, nil)
		if len(expired) > 0 && atCM == 0 {
			atCM = now
		}
		if isDue {
			if answer, ok := m.receive(now, peer(0), cm.message(now, 0)); ok {
				cm.receive(now, peer(1), answer)
			}
		}
		if _, expired := m.tick(now, nil); len(expired) > 0 && atMachine == 0 {
			atMachine = now
		}
	}
	return atCM, atMachine
}

// If a machine's workers do nothing any more, although its keeper still runs, it is suspected
// within two leases: by the CM, or by the machine if it is the CM. By then the hung machine holds
// no lease. It suspects nobody.
func TestHungIsSuspected(t *testing.T) {
	for name, isCM := range map[string]bool{"machine": false, "CM": true} {
		cm, m := two()
		hangs := int64(1000 + 5*length)
		atCM, atMachine := exchange(cm, m, 1000, hangs+4*length, func(now int64) {
			hung, well := m, cm
			if isCM {
				hung, well = cm, m
			}
			well.beat = now
			if now < hangs {
				hung.beat = now
			}
		})
		suspected, other, valid := atCM, atMachine, m.valid
		if isCM {
			suspected, other, valid = atMachine, atCM, cm.valid
		}
		if suspected < hangs || suspected > hangs+2*length {
			t.Errorf("%s hangs at %d, suspected at %d", name, hangs, suspected)
		}
		if other != 0 {
			t.Errorf("%s hangs, and suspects the other one at %d", name, other)
		}
		if valid >= suspected {
			t.Errorf("%s relies on its lease until %d, and is suspected at %d", name, valid, suspected)
		}
	}
}

// A machine that does nothing for a lease and a half, and then goes on, is not suspected. It does
// not suspect the other because of messages that it has missed or not sent meanwhile.
func TestLateBeatIsForgiven(t *testing.T) {
	for name, isCM := range map[string]bool{"machine": false, "CM": true} {
		cm, m := two()
		for hangs := int64(1000 + 5*length); hangs < 1000+6*length; hangs += length / 16 {
			atCM, atMachine := exchange(cm, m, 1000, hangs+8*length, func(now int64) {
				hung, well := m, cm
				if isCM {
					hung, well = cm, m
				}
				well.beat = now
				if now < hangs || now >= hangs+length*3/2 {
					hung.beat = now
				}
			})
			if atCM != 0 || atMachine != 0 {
				t.Fatalf("%s hangs at %d for a lease and a half: the CM suspects at %d, the machine at %d", name, hangs, atCM, atMachine)
			}
			if end := hangs + 8*length; cm.valid < end || m.valid < end {
				t.Fatalf("%s went on, but leases last until %d and %d, and it is %d", name, cm.valid, m.valid, end)
			}
			cm, m = two()
		}
	}
}

// A machine without any Beat counts as working.
func TestWithoutBeats(t *testing.T) {
	cm, m := two()
	if atCM, atMachine := exchange(cm, m, 1000, 1000+20*length, func(int64) {}); atCM != 0 || atMachine != 0 {
		t.Errorf("suspected at %d, %d", atCM, atMachine)
	}
}

// Keepers of calls follow the same rules: a machine that stops its beats is suspected within two
// leases, and no other machine is.
func TestCallsHung(t *testing.T) {
	for hung := range rdma.MachineID(3) {
		simulate(t, sim.Options{Seed: 5, Drift: 100}, 3, func(s *simulated) {
			var stopped bool
			for m, k := range s.keepers { // order does not show
				p := s.world.Machine(m).Process()
				p.Go(func() {
					for m != hung || !stopped {
						k.Beat()
						p.Sleep(2 * time.Millisecond)
					}
				})
			}
			s.until("all leases are valid", s.allValid)
			s.world.Outside().Sleep(100 * time.Millisecond)
			if len(s.expired) > 0 {
				t.Fatalf("suspected: %v", s.expired)
			}
			stopped = true
			begin := s.world.Now()
			s.until("it is suspected", func() bool { return slices.Contains(slices.Concat(s.expired[0], s.expired[1]), hung) })
			if took := s.world.Now() - begin; took > 20*time.Millisecond+200*time.Microsecond {
				t.Errorf("machine %d is suspected after %v", hung, took)
			}
			if s.keepers[hung].Valid() || len(s.expired[hung]) > 0 {
				t.Errorf("machine %d hangs: its lease lasts: %v; it suspects %v", hung, s.keepers[hung].Valid(), s.expired[hung])
			}
		})
	}
}
