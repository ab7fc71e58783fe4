package membership

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// All machines have gone down, some or all come back: they meet, and keep their
// memory, with or without those that are missing.
func TestMeeting(t *testing.T) {
	for seed := range uint64(4) {
		for back := 2; back <= 5; back++ {
			simulate(t, sim.Options{Seed: seed}, 5, 3, func(g *group) {
				before := g.settled(5)
				for i := range 5 {
					g.allocate(rdma.MachineID(i))
				}
				for i := range 5 {
					g.world.Machine(rdma.MachineID(i)).Kill()
				}
				begin := g.world.Now()
				for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(5)[:back] {
					g.world.Outside().Sleep(time.Duration(seed) * 3 * time.Millisecond)
					g.boot(rdma.MachineID(i), nil)
				}
				if back <= 2 { // no majority
					g.world.Outside().Sleep(time.Second)
					if c := g.cmConfig(); c.ID != before.ID || g.events["waiting"] == 0 {
						t.Errorf("configuration %d after %d", c.ID, before.ID)
					}
					return
				}
				c := g.settled(back)
				switch took := g.world.Now() - begin; {
				case back == 5 && took > restartWait:
					t.Errorf("all are back, and begin after %v", took)
				case back < 5 && (took < restartWait || took > restartWait+15*leaseLength):
					t.Errorf("%d are back, and begin after %v; they wait %v for the others", back, took, restartWait)
				}
				if len(c.Lost)+len(c.Unavailable()) > 0 || len(c.Regions) != 5 {
					t.Errorf("lost %v, unavailable %v", c.Lost, c.Unavailable())
				}
				for _, m := range c.Machines {
					if n := g.nodes[m]; n.started != nil {
						t.Errorf("machine %d: %v", m, n.started)
					}
				}
			})
		}
	}
}

// Machines that have come back with nothing, because they died before they had applied
// a configuration, count for the majority of a meeting, and join those that have their
// memory; if nobody has, one of them begins.
func TestMeetingOfTheEmpty(t *testing.T) {
	for seed := range uint64(4) {
		for empty := 1; empty <= 3; empty++ {
			simulate(t, sim.Options{Seed: seed}, 3, 2, func(g *group) {
				for i := range rdma.MachineID(3) {
					g.world.Machine(i).Kill()
				}
				for i := range rdma.MachineID(empty) {
					g.wipe(i)
				}
				for i := range rdma.MachineID(3) {
					g.boot(i, nil)
				}
				g.settled(3)
			})
		}
	}
}

// A survivor restarts to meet those that have come back with nothing, too.
func TestSurvivorMeetsTheEmpty(t *testing.T) {
	simulate(t, sim.Options{Seed: 28}, 3, 2, func(g *group) {
		cm := g.cm()
		for _, m := range g.others() {
			g.world.Machine(m).Kill()
			g.wipe(m)
		}
		for _, m := range g.others() {
			g.boot(m, nil)
		}
		g.until("the survivor restarts", func() bool { return g.nodes[cm].host.restarted })
		g.world.Machine(cm).Kill()
		g.boot(cm, nil)
		g.settled(3)
	})
}

// The only machine that has a region comes back with empty memory. Its error says that the instance
// waits for its earlier memory, and the others go on.
func TestMeetingNeedsMemory(t *testing.T) {
	simulate(t, sim.Options{Seed: 29}, 3, 1, func(g *group) {
		p := g.allocate(0)
		for i := range rdma.MachineID(3) {
			g.world.Machine(i).Kill()
			g.wipe(i)
		}
		for i := range rdma.MachineID(3) {
			g.boot(i, nil)
		}
		first := g.nodes[0]
		g.until("the first machine is refused", func() bool { return first.isUp })
		g.world.Machine(0).Kill()
		c := g.settled(2)
		if !errors.Is(first.started, ErrNeeded) || !strings.Contains(first.started.Error(), "farmsql forget --machine 0") {
			t.Errorf("%v", first.started)
		}
		if now, _ := c.Placement(p.Region); now.IsAvailable() || len(c.Lost) > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// The machine that leads a restart together may not learn that its configuration is stored, or may
// die then.
func TestMeetingIsInterrupted(t *testing.T) {
	for name, interrupt := range map[string]func(g *group){
		"the answer is lost": func(g *group) {
			once := true
			g.store.fail = func(_ rdma.MachineID, old uint64, next *cluster.Configuration) error {
				if !once {
					return nil
				}
				once = false
				if err := g.store.MemoryStore.CompareAndSwap(old, next); err != nil {
					t.Error(err)
				}
				return cluster.ErrUnreachable
			}
		},
		"it dies, and comes back": func(g *group) { g.dieStored(true) },
		"it dies":                 func(g *group) { g.dieStored(false) },
	} {
		simulate(t, sim.Options{Seed: 31}, 5, 3, func(g *group) {
			before := g.settled(5)
			for i := range rdma.MachineID(5) {
				g.world.Machine(i).Kill()
			}
			interrupt(g)
			for i := range rdma.MachineID(5) {
				g.boot(i, nil)
			}
			n := 5
			if name == "it dies" {
				n = 4
			}
			if c := g.settled(n); c.ID <= before.ID {
				t.Errorf("%s: configuration %d after %d", name, c.ID, before.ID)
			}
		})
	}
}

// A CM dies when it has stored a configuration that admits a machine, and another member dies with
// it. The machines that are left are no majority. Together with the admitted machine, which was not
// told, and the CM, which comes back, they are one, and restart together.
func TestMeetingWithWhoWasLetIn(t *testing.T) {
	simulate(t, sim.Options{Seed: 31}, 4, 2, func(g *group) {
		c := g.settled(4)
		cm := c.CM
		others := slices.DeleteFunc(slices.Clone(c.Machines), func(m rdma.MachineID) bool { return m == cm })
		joiner, victim, left := others[0], others[1], others[2]
		g.world.Machine(joiner).Kill()
		g.settled(3)
		let := cluster.ID(0) // the configuration that lets it in
		g.store.fail = func(_ rdma.MachineID, old uint64, next *cluster.Configuration) error {
			if _, in := next.Member(joiner); !in || let != 0 {
				return nil
			}
			let = next.ID
			if err := g.store.MemoryStore.CompareAndSwap(old, next); err != nil {
				t.Error(err)
			}
			g.world.Machine(cm).Kill()
			g.world.Machine(victim).Kill()
			g.world.Outside().Go(func() { g.boot(cm, nil) })
			return cluster.ErrUnreachable
		}
		g.boot(joiner, nil)
		g.until("the machine that is left restarts", func() bool { return let != 0 && g.nodes[left].host.restarted })
		g.world.Machine(left).Kill()
		g.boot(left, nil)
		if c := g.settled(3); let == 0 || c.ID <= let {
			t.Errorf("configuration %d, after %d", c.ID, let)
		}
	})
}

// dieStored has the next machine die that stores a configuration, for good or not.
func (g *group) dieStored(comesBack bool) {
	once := true
	g.change = func(cfg *Config) {
		id := cfg.Self.Machine
		cfg.Step = func(s recovery.Step) {
			if s != recovery.StepStored || !once {
				return
			}
			once = false
			g.world.Machine(id).Kill()
			if comesBack {
				g.world.Outside().Go(func() { g.boot(id, nil) })
			}
		}
	}
}

// Machines that do not reach the store do not lead a meeting, and take part in it.
func TestMeetingCutFromTheStore(t *testing.T) {
	simulate(t, sim.Options{Seed: 30}, 5, 3, func(g *group) {
		before := g.settled(5)
		for i := range rdma.MachineID(5) {
			g.allocate(i)
		}
		for i := range rdma.MachineID(5) {
			g.world.Machine(i).Kill()
		}
		g.store.cut[before.CM], g.store.cut[(before.CM+1)%5] = true, true
		for i := range rdma.MachineID(5) {
			g.boot(i, nil)
		}
		if c := g.settled(5); g.store.cut[c.CM] || len(c.Unavailable()) > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A meeting goes on without a region all of whose replicas are missing. It is there
// again when one of them is.
func TestMeetingWithoutARegion(t *testing.T) {
	simulate(t, sim.Options{Seed: 25}, 3, 1, func(g *group) {
		p := g.allocate(2)
		for i := range 3 {
			g.world.Machine(rdma.MachineID(i)).Kill()
		}
		g.boot(0, nil)
		g.boot(1, nil)
		begin := g.world.Now()
		if c := g.settled(2); c.Regions[0].IsAvailable() || len(c.Lost) > 0 || g.world.Now() < begin+200*time.Millisecond {
			t.Errorf("after %v: %+v", g.world.Now()-begin, c)
		}
		g.boot(2, nil)
		if c := g.settled(3); len(c.Regions) != 1 || !c.Regions[0].IsPrimary(p.Primary) {
			t.Errorf("%+v", c)
		}
	})
}

// A survivor that finds no majority, but with the machines that were restarted,
// restarts itself, and meets them, whether or not it reaches the store.
func TestSurvivorRestartsToMeet(t *testing.T) {
	for _, isCut := range []bool{false, true} {
		t.Run(fmt.Sprintf("cut from the store: %v", isCut), func(t *testing.T) {
			simulate(t, sim.Options{Seed: 26}, 3, 3, func(g *group) { meetSurvivor(g, isCut) })
		})
	}
}

// A machine that is stopped is none of a majority, though its memory answers probes: a
// configuration with it, of two, could not be moved on from, whoever comes back.
func TestStoppedMachineIsNoMajority(t *testing.T) {
	simulate(t, sim.Options{Seed: 31}, 3, 3, func(g *group) {
		before := g.settled(3)
		g.world.Machine(1).Pause(time.Hour)
		g.world.Machine(0).Kill()
		g.boot(0, nil)
		g.until("the survivor restarts itself", func() bool { return g.nodes[2].host.restarted })
		g.world.Machine(2).Kill()
		g.boot(2, nil)
		if c := g.settled(2); c.ID != before.ID+1 || slices.Contains(c.Machines, 1) {
			t.Errorf("configuration %d of machines %v after %d", c.ID, c.Machines, before.ID)
		}
	})
}

func meetSurvivor(g *group, isCut bool) {
	t := g.T
	before := g.settled(3)
	g.store.cut[2] = isCut
	g.world.Machine(0).Kill()
	g.world.Machine(1).Kill()
	g.boot(0, nil)
	g.boot(1, nil)
	g.until("the survivor restarts itself", func() bool { return g.nodes[2].host.restarted })
	if g.cmConfig().ID != before.ID {
		t.Error("a minority has moved on")
	}
	g.world.Machine(2).Kill()
	g.boot(2, nil)
	if c := g.settled(3); c.ID != before.ID+1 {
		t.Errorf("configuration %d after %d", c.ID, before.ID)
	}
	if c := g.cmConfig(); len(c.Unavailable()) > 0 {
		t.Errorf("regions %v are unavailable", c.Unavailable())
	}
}
