package membership

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/recovery"
)

// announceAll has all machines announce that they leave, and waits until all know it.
func (g *group) announceAll() {
	g.Helper()
	for _, n := range g.nodes {
		n.process.Go(n.AnnounceLeave)
	}
	g.until("all know that all leave", func() bool {
		return !slices.ContainsFunc(g.cmConfig().Machines, func(id rdma.MachineID) bool { return g.nodes[id].begins() })
	})
}

// Of machines that are stopped together, those that take longer evict none of those that have ended
// already, the CM or another, although their leases run out: all come back as they were.
func TestLeaversEvictNobody(t *testing.T) {
	for first := range rdma.MachineID(3) {
		simulate(t, sim.Options{Seed: 87}, 3, 3, func(g *group) {
			c := g.settled(3)
			g.announceAll()
			for i := range rdma.MachineID(3) {
				id := (first + i) % 3
				g.at(id, func(n *node) { n.Leave() })
				g.world.Machine(id).Kill()
				g.world.Outside().Sleep(30 * leaseLength)
			}
			if now := g.cmConfig(); now.Revision != c.Revision {
				t.Errorf("machine %d ends first: configuration %d of %v after %d", first, now.ID, now.Machines, c.ID)
			}
			for i := range rdma.MachineID(3) {
				g.boot(i, nil)
			}
			if now := g.settled(3); now.ID != c.ID+1 {
				t.Errorf("configuration %d after %d", now.ID, c.ID)
			}
		})
	}
}

// A machine at which nothing runs any more waits for those that leave, too, and serves them, until
// nothing runs at any; it does not wait for one that has died.
func TestLeaversAwaitEachOther(t *testing.T) {
	for _, dies := range []bool{false, true} {
		simulate(t, sim.Options{Seed: 88}, 3, 3, func(g *group) {
			c := g.settled(3)
			last := (c.CM + 1) % 3
			g.announceAll()
			var over []rdma.MachineID
			await := func(id rdma.MachineID) {
				g.nodes[id].process.Go(func() {
					g.nodes[id].AwaitLeavers()
					over = append(over, id)
				})
			}
			for _, id := range c.Machines {
				if id != last {
					await(id)
				}
			}
			g.world.Outside().Sleep(30 * leaseLength)
			if len(over) > 0 || !g.nodes[last].keeper.Valid() {
				t.Errorf("machines %v do not wait for machine %d", over, last)
			}
			if dies {
				g.world.Machine(last).Kill()
			} else {
				await(last)
			}
			g.until("none waits", func() bool { return len(over) >= 2 })
			if now := g.cmConfig(); now.Revision != c.Revision {
				t.Errorf("configuration %d after %d", now.ID, c.ID)
			}
		})
	}
}

// A machine that leaves while others stay waits for nobody, and is replaced when it has ended. If it is
// the CM, another takes its place before, and replaces machines that fail meanwhile.
func TestLeavingBesideOthers(t *testing.T) {
	simulate(t, sim.Options{Seed: 89}, 5, 3, func(g *group) {
		c := g.settled(5)
		g.nodes[c.CM].process.Go(g.nodes[c.CM].AnnounceLeave)
		g.until("another is the CM", func() bool { return g.cm() != c.CM })
		now := g.settled(5)
		failing := slices.DeleteFunc(slices.Clone(now.Machines), func(id rdma.MachineID) bool { return id == c.CM || id == now.CM })[0]
		g.at(c.CM, func(n *node) { n.AwaitLeavers(); n.Leave() })
		g.world.Machine(failing).Kill()
		if now = g.settled(4); !slices.Contains(now.Machines, c.CM) {
			t.Errorf("members %v without machine %d, which is there", now.Machines, c.CM)
		}
		g.world.Machine(c.CM).Kill()
		g.settled(3)
	})
}

// The CM hands over to none that leaves itself, and a machine that leaves does not take over.
func TestLeaversDoNotTakeOver(t *testing.T) {
	simulate(t, sim.Options{Seed: 90}, 4, 3, func(g *group) {
		c := g.settled(4)
		stays := successors(c, 4)[2]
		for id, n := range g.nodes {
			if id != stays {
				n.process.Go(n.AnnounceLeave)
			}
		}
		g.until("who stays is the CM", func() bool { return g.cm() == stays })
		now := g.settled(4)
		for id, n := range g.nodes {
			if id != stays {
				if err := n.takeOver(now); !errors.Is(err, errChanging) {
					t.Errorf("a machine that leaves takes over: %v", err)
				}
			}
		}
		g.world.Outside().Sleep(30 * leaseLength)
		if g.cm() != stays || g.cmConfig().ID != now.ID {
			t.Errorf("machine %d is the CM of configuration %d", g.cm(), g.cmConfig().ID)
		}
	})
}

// Members that all leave and do not end go on to replace machines in the end: one that was started
// again is let in.
func TestLeaversDoNotEnd(t *testing.T) {
	simulate(t, sim.Options{Seed: 91}, 3, 3, func(g *group) {
		c := g.settled(3)
		begin := g.world.Now()
		g.announceAll()
		back := (c.CM + 1) % 3
		g.world.Machine(back).Kill()
		g.boot(back, nil)
		for range 16 {
			g.world.Outside().Sleep(time.Second)
		}
		now := g.settled(3)
		if took := g.world.Now() - begin; now.ID == c.ID || took > leavePatience+2*time.Second {
			t.Errorf("configuration %d after %d and %v", now.ID, c.ID, took)
		}
	})
}

// One answer that is late, or a refusal, does not make a member dead; its end does, or silence.
func TestLateAnswerOfALeaver(t *testing.T) {
	nic, err := local.NewNetwork(local.Options{}).Join(1)
	if err != nil {
		t.Fatal(err)
	}
	defer nic.Close()
	m := &Machine{cfg: Config{NIC: nic}}
	m.mu.unanswered = make(map[call.Peer]int)
	p := call.Peer{Machine: 2, Incarnation: 1}
	late := context.DeadlineExceeded
	for i, c := range []struct {
		err  error
		want bool
	}{{late, false}, {late, false}, {nil, false}, {late, false}, {late, false}, {recovery.ErrNotMember, false}, {late, false}, {late, false}, {late, false}, {late, false}, {late, true}, {nil, false}, {call.ErrOtherLife, true}} {
		if lost := m.isLost(p, c.err); lost != c.want {
			t.Errorf("answer %d, %v: lost is %v", i, c.err, lost)
		}
	}
}
