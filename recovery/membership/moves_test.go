package membership

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// fill makes machines say that they have filled their replicas.
func (g *group) fill() {
	g.Helper()
	c := g.cmConfig()
	for _, id := range c.Machines {
		var ids []region.ID
		for _, p := range c.Regions {
			if slices.Contains(p.Filling, id) {
				ids = append(ids, p.Region)
			}
		}
		if len(ids) > 0 {
			g.at(id, func(n *node) { _ = n.Filled(context.Background(), c.ID, ids) }) // fails if the configuration changes
		}
	}
}

// moveUntil fills what is to be filled until the condition holds.
func (g *group) moveUntil(what string, f func(c *cluster.Configuration) bool) {
	g.Helper()
	for begin := g.world.Now(); ; g.world.Outside().Sleep(leaseLength / 4) {
		c := g.settled(len(g.nodes))
		if f(c) {
			return
		}
		if g.world.Now() > begin+5*time.Second {
			g.Fatalf("not within five seconds: %s: %+v", what, c)
		}
		g.fill()
	}
}

func replicasAt(c *cluster.Configuration, id rdma.MachineID) (n int) {
	for _, p := range c.Regions {
		if p.Has(id) {
			n++
		}
	}
	return n
}

func isMoving(c *cluster.Configuration) bool {
	return slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool { return p.Move != nil })
}

// A machine that joins gets its share once it has been a member for balanceDelay, and no later
// configuration follows when all is even.
func TestJoinerGetsItsShare(t *testing.T) {
	simulate(t, sim.Options{Seed: 1}, 3, 2, func(g *group) {
		for i := range 12 {
			g.allocate(rdma.MachineID(i % 3))
		}
		g.boot(3, nil)
		joined := g.settled(4)
		begin := g.world.Now()
		g.moveUntil("regions move", isMoving)
		if waited := g.world.Now() - begin; waited < (balanceDelay-2)*leaseLength {
			t.Errorf("regions move %v after a machine has joined", waited)
		}
		g.moveUntil("machine 3 has its share", func(c *cluster.Configuration) bool { return replicasAt(c, 3) == 6 && !isMoving(c) })
		even := g.settled(4)
		if even.PrimaryOf(3) < 2 {
			t.Errorf("machine 3 is the primary of %d regions", even.PrimaryOf(3))
		}
		g.world.Outside().Sleep(3 * balanceDelay * leaseLength)
		if c := g.settled(4); c.ID != even.ID {
			t.Errorf("configuration %d follows %d, in which all was even", c.ID, even.ID)
		}
		t.Logf("from configuration %d to %d", joined.ID, even.ID)
	})
}

// Any member can ask to drain any. The regions move at once, and none comes back before that is
// undone.
func TestDrainedByTheCM(t *testing.T) {
	for asks := range rdma.MachineID(4) {
		simulate(t, sim.Options{Seed: uint64(asks)}, 4, 2, func(g *group) {
			for i := range 8 {
				g.allocate(rdma.MachineID(i % 4))
			}
			drain := func(undo bool) {
				g.at(asks, func(n *node) {
					err := errChanging
					for err != nil && IsPassing(err) {
						err = n.Drain(context.Background(), 2, undo)
					}
					if err != nil {
						t.Errorf("drain, undo %v: %v", undo, err)
					}
				})
			}
			drain(false)
			drain(false) // once more changes nothing
			begin := g.world.Now()
			g.moveUntil("machine 2 is empty", func(c *cluster.Configuration) bool { return replicasAt(c, 2) == 0 && !isMoving(c) })
			if took := g.world.Now() - begin; took > balanceDelay*leaseLength/2 {
				t.Errorf("empty after %v", took)
			}
			for _, id := range []rdma.MachineID{0, 1, 2, 3} {
				if !g.nodes[id].Configuration().IsDraining(2) {
					t.Errorf("machine %d does not know that machine 2 is drained", id)
				}
			}
			drain(true)
			g.moveUntil("machine 2 has its share", func(c *cluster.Configuration) bool { return replicasAt(c, 2) >= 3 && !isMoving(c) })
		})
	}
}

// What cannot be drained is said to whoever asks, and nothing changes.
func TestDrainRefused(t *testing.T) {
	simulate(t, sim.Options{}, 3, 3, func(g *group) {
		g.allocate(0)
		before := g.settled(3)
		for _, id := range g.nodes[0].Configuration().Machines {
			g.at(id, func(n *node) {
				if err := n.Drain(context.Background(), 1, false); !errors.Is(err, cluster.ErrCannotDrain) {
					t.Errorf("machine %d: %v", id, err)
				}
				if err := n.Drain(context.Background(), 1, true); err != nil {
					t.Errorf("machine %d: undo: %v", id, err)
				}
			})
		}
		if c := g.settled(3); c.Revision != before.Revision {
			t.Errorf("revision %d, then %d", before.Revision, c.Revision)
		}
		if _, err := g.nodes[g.cm()].onDrain(g.nodes[0].self, []byte("?")); err == nil {
			t.Error("a request that is none is granted")
		}
	})
}

// A request that has become impossible since it came is dropped.
func TestDrainThatBecomesImpossible(t *testing.T) {
	simulate(t, sim.Options{}, 4, 3, func(g *group) {
		g.allocate(0)
		cm := g.nodes[g.cm()]
		three, _ := g.settled(4).Without([]rdma.MachineID{g.others()[0]}, cm.self.Machine)
		r := drainRequest{Machine: g.others()[1]}
		cm.mu.drains = []drainRequest{r}
		if _, err := cm.drained(three, r); !errors.Is(err, cluster.ErrCannotDrain) || len(cm.mu.drains) > 0 {
			t.Errorf("%v, requests %v", err, cm.mu.drains)
		}
	})
}

// While a member is about to stop, nothing moves.
func TestNoMovesWhileSomebodyLeaves(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		for i := range 8 {
			g.allocate(rdma.MachineID(i % 4))
		}
		cm, leaver := g.cm(), g.others()[0]
		g.at(leaver, func(n *node) { n.AnnounceLeave() })
		g.until("the CM knows", func() bool {
			m := g.nodes[cm].Machine
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.mu.leavers) > 0
		})
		drained := g.others()[1]
		g.at(cm, func(n *node) {
			if err := n.Drain(context.Background(), drained, false); err != nil {
				t.Error(err)
			}
		})
		g.world.Outside().Sleep(20 * leaseLength)
		if c := g.cmConfig(); !c.IsDraining(drained) || isMoving(c) {
			t.Errorf("%+v", c)
		}
	})
}
