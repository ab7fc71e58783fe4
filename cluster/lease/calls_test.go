package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// simulated are machines in a simulated world, whose leases last 10 ms.
type simulated struct {
	*testing.T
	world   *sim.World
	keepers map[rdma.MachineID]Keeper
	expired map[rdma.MachineID][]rdma.MachineID // by who has noticed
}

func simulate(t *testing.T, o sim.Options, n int, f func(s *simulated)) {
	t.Helper()
	s := &simulated{T: t, world: sim.New(o), keepers: map[rdma.MachineID]Keeper{}, expired: map[rdma.MachineID][]rdma.MachineID{}}
	err := s.world.Run(func() {
		var machines []rdma.MachineID
		for i := range n {
			machines = append(machines, rdma.MachineID(i))
			s.start(machines[i])
		}
		for _, m := range machines {
			s.keepers[m].Configure(0, peers(machines...))
		}
		f(s)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *simulated) start(m rdma.MachineID) {
	p := s.world.Machine(m).Boot()
	nic, err := p.Join()
	if err != nil {
		s.Fatal(err)
	}
	e := call.New(nic, p, peer(m).Incarnation)
	s.keepers[m] = NewCalls(e, 1, Config{Length: 10 * time.Millisecond, Clock: p, Expired: func(x rdma.MachineID) { s.expired[m] = append(s.expired[m], x) }})
}

// until lets time pass until something holds.
func (s *simulated) until(what string, f func() bool) {
	s.Helper()
	for begin := s.world.Now(); !f(); s.world.Outside().Sleep(100 * time.Microsecond) {
		if s.world.Now() > begin+time.Second {
			s.Fatalf("not within a second: %s", what)
		}
	}
}

func (s *simulated) allValid() bool {
	for m := range s.keepers {
		if !s.world.Machine(m).Process().Dead() && !s.keepers[m].Valid() {
			return false
		}
	}
	return true
}

// TestPaper5_1_ShortLeases: a 90-machine cluster uses 5 ms leases (here 10 ms, as
// in section 6) with no false positives. Messages are lost now and then.
func TestPaper5_1_ShortLeases(t *testing.T) {
	simulate(t, sim.Options{Seed: 1, Loss: 2, Drift: 100}, 90, func(s *simulated) {
		s.until("all leases are valid", s.allValid)
		for begin := s.world.Now(); s.world.Now() < begin+time.Second; s.world.Outside().Sleep(500 * time.Microsecond) {
			if !s.allValid() {
				t.Fatal("a lease has ended")
			}
		}
		if len(s.expired) > 0 {
			t.Errorf("suspected: %v", s.expired)
		}
	})
}

// The CM suspects a dead machine within two lease times, and all machines suspect a dead CM.
func TestExpiry(t *testing.T) {
	for _, dead := range []rdma.MachineID{0, 2} {
		simulate(t, sim.Options{Seed: 2}, 4, func(s *simulated) {
			s.until("all leases are valid", s.allValid)
			s.world.Machine(dead).Kill()
			begin := s.world.Now()
			s.until("the dead machine is suspected", func() bool {
				if dead == 0 {
					return len(s.expired[1]) == 1 && len(s.expired[2]) == 1 && len(s.expired[3]) == 1
				}
				return slices.Equal(s.expired[0], []rdma.MachineID{dead})
			})
			if took := s.world.Now() - begin; took > 20*time.Millisecond {
				t.Errorf("took %v", took)
			}
			if dead == 0 && (s.keepers[1].Valid() || s.keepers[3].Valid()) {
				t.Error("a lease lasts longer than its granter")
			}
			if dead == 2 && !s.keepers[0].Valid() {
				t.Error("the CM has lost its lease, with a majority left")
			}
		})
	}
}

// A CM without a majority has no lease. Soon no machine has a lease from it.
func TestMinorityLosesItsLeases(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 5, func(s *simulated) {
		s.until("all leases are valid", s.allValid)
		for _, a := range []rdma.MachineID{0, 1} {
			for _, b := range []rdma.MachineID{2, 3, 4} {
				s.world.Cut(a, b)
				s.world.Cut(b, a)
			}
		}
		s.until("no lease is valid", func() bool {
			return !slices.ContainsFunc([]rdma.MachineID{0, 1, 2, 3, 4}, func(m rdma.MachineID) bool { return s.keepers[m].Valid() })
		})
	})
}

// In a new configuration, the evicted machine's lease is outstanding for a while, and the leases of
// the others continue. A closed keeper has no lease.
func TestConfigure(t *testing.T) {
	simulate(t, sim.Options{Seed: 4}, 3, func(s *simulated) {
		s.until("all leases are valid", s.allValid)
		if s.keepers[0].Outstanding() != 0 {
			t.Error("outstanding before anybody was evicted")
		}
		s.keepers[0].Configure(0, peers(0, 1))
		s.keepers[1].Configure(0, peers(0, 1))
		s.keepers[2].Configure(0, peers(0, 1))
		if !s.keepers[0].Valid() || !s.keepers[1].Valid() || s.keepers[2].Valid() {
			t.Error("members go on, others do not")
		}
		if left := s.keepers[0].Outstanding(); left < time.Millisecond || left > 11*time.Millisecond {
			t.Errorf("outstanding: %v", left)
		}
		s.until("nothing is outstanding", func() bool { return s.keepers[0].Outstanding() == 0 })
		leases := s.keepers[0].Leases()
		if len(leases) != 1 || leases[0].Machine != 1 || leases[0].Left <= 0 || leases[0].Held <= 0 {
			t.Errorf("%+v", leases)
		}
		if k := s.keepers[0]; k.Length() != 10*time.Millisecond || k.Variant() != "goroutine" {
			t.Errorf("%v, %s", k.Length(), k.Variant())
		}
		s.keepers[1].Close()
		if s.keepers[1].Valid() {
			t.Error("a closed keeper has a lease")
		}
		s.until("the machine whose keeper is closed is suspected", func() bool { return slices.Equal(s.expired[0], []rdma.MachineID{1}) })
	})
}

func TestMembers(t *testing.T) {
	c := &cluster.Configuration{}
	c.AddMember(cluster.Member{Machine: 4, Incarnation: 104})
	c.AddMember(cluster.Member{Machine: 2, Incarnation: 102})
	if got := Members(c); !slices.Equal(got, peers(2, 4)) {
		t.Errorf("%v", got)
	}
}
