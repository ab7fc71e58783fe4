package membership

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
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

// Regions move balanceDelay after the last machine has joined, not later, although the CM has begun to
// wait when another one had joined before.
func TestBalanceAfterSeveralJoins(t *testing.T) {
	simulate(t, sim.Options{Seed: 4}, 3, 2, func(g *group) {
		for i := range 12 {
			g.allocate(rdma.MachineID(i % 3))
		}
		g.boot(3, nil)
		g.settled(4)
		g.world.Outside().Sleep(balanceDelay * leaseLength / 3)
		g.boot(4, nil)
		g.settled(5)
		begin := g.world.Now()
		g.moveUntil("regions move", isMoving)
		if waited := g.world.Now() - begin; waited < (balanceDelay-2)*leaseLength || waited > (balanceDelay+5)*leaseLength {
			t.Errorf("regions move %v after the last machine has joined, with leases of %v", waited, leaseLength)
		}
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
					if err != nil || n.Configuration().IsDraining(2) == undo { // whoever has asked looks at this machine's status
						t.Errorf("drain, undo %v: %v, in %+v", undo, err, n.Configuration())
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

// While there are fewer members than there were, regions do not move for the sake of balance: the
// machine that is away is probably starting. When it is back they wait no longer than after any
// change, and a machine that nobody expects back is not waited for.
func TestBalanceAfterALoss(t *testing.T) {
	for _, isLost := range []bool{false, true} { // or else taken away on purpose
		now := time.Unix(1000, 0)
		four := movingInstance(4)
		if !isLost {
			four.Draining = []cluster.Memory{{Machine: 3, Token: four.Memory[3]}}
		}
		three, _ := four.Without([]rdma.MachineID{3}, 0)
		var m moves
		m.noteMembers(nil, four, now)
		m.noteMembers(four, three, now.Add(time.Hour))
		if isFewer := len(three.Machines) < m.most; isFewer != isLost {
			t.Errorf("lost %v: of %d members %d are left", isLost, m.most, len(three.Machines))
		}
		m.noteMembers(three, three.Succeed(), now.Add(2*time.Hour))
		if m.changed != now.Add(time.Hour) {
			t.Errorf("changed %v", m.changed)
		}
	}
	simulate(t, sim.Options{Seed: 3}, 4, 2, func(g *group) {
		for range 12 {
			g.allocate(g.cm())
		}
		begin := g.world.Now()
		lost := g.others()[0]
		g.world.Machine(lost).Kill()
		g.settled(3)
		for g.world.Now() < begin+10*balanceDelay*leaseLength {
			g.fill()
			g.world.Outside().Sleep(10 * leaseLength)
			if c := g.settled(3); isMoving(c) {
				t.Fatalf("regions move %v after a loss", g.world.Now()-begin)
			}
		}
		in := g.nodes[g.cm()].Status().BalanceIn
		if in < lossDelay*leaseLength/2 {
			t.Errorf("the status says that regions move in %v", in)
		}
		g.boot(lost, nil)
		g.settled(4)
		back := g.world.Now()
		g.moveUntil("regions move", isMoving)
		if waited := g.world.Now() - back; waited > (balanceDelay+5)*leaseLength {
			t.Errorf("regions move %v after the machine is back", waited)
		}
	})
}

// movingInstance returns a configuration of n machines that know moves.
func movingInstance(n int) *cluster.Configuration {
	c := &cluster.Configuration{ID: 1, Revision: 1, Replicas: 2, NextRegion: 1, Speaks: protocol.Own.Max}
	for i := range n {
		c.AddMember(cluster.Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: 1, Memory: uint64(10 + i), Protocol: protocol.Own})
	}
	return c
}

// The CM looks again when lossDelay is over, and then waits for nobody.
func TestBalanceWithoutTheLost(t *testing.T) {
	simulate(t, sim.Options{}, 3, 2, func(g *group) {
		g.at(g.cm(), func(n *node) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.mu.moves.most++
			n.mu.moves.changed = n.cfg.Clock.Now().Add(-lossDelay*leaseLength + time.Millisecond)
			if n.balanceInLocked() != time.Millisecond {
				t.Errorf("in %v", n.balanceInLocked())
			}
			n.mu.moves.changed = n.mu.moves.changed.Add(-time.Millisecond)
			if n.balanceInLocked() != 0 || n.mu.moves.most != 3 {
				t.Errorf("in %v, of %d", n.balanceInLocked(), n.mu.moves.most)
			}
		})
	})
}

// Whoever refuses what moves there gets nothing else, and the regions stay or go elsewhere. What was
// refused before this configuration, or does not move, counts for nothing.
func TestRefusedWhileFilled(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		for i := range 8 {
			g.allocate(rdma.MachineID(i % 4))
		}
		g.settled(4)
		drained := g.others()[0]
		g.at(g.cm(), func(n *node) {
			if err := n.Drain(context.Background(), drained, false); err != nil {
				t.Error(err)
			}
		})
		var c *cluster.Configuration
		g.until("a region moves", func() bool { c = g.cmConfig(); return isMoving(c) })
		c = g.settled(4)
		at := slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.Move != nil })
		moving := c.Regions[at]
		still := slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.Move == nil })
		g.at(moving.Move.To, func(n *node) {
			if err := n.Refuse(context.Background(), c.ID, []region.ID{c.Regions[still].Region}); err != nil {
				t.Errorf("what does not move: %v", err)
			}
			if err := n.Refuse(context.Background(), c.ID-1, []region.ID{moving.Region}); err == nil {
				t.Error("refused in an earlier configuration")
			}
			if err := n.Refuse(context.Background(), c.ID, []region.ID{moving.Region}); err != nil {
				t.Error(err)
			}
		})
		g.until("the move is over", func() bool {
			now := g.cmConfig()
			return now.ID > c.ID && now.Regions[at].Move == nil || now.Regions[at].Move != nil && now.Regions[at].Move.To != moving.Move.To
		})
		now := g.cmConfig()
		if member, _ := now.Member(moving.Move.To); member.Capacity == 0 || now.Regions[at].Has(moving.Move.To) {
			t.Errorf("%+v: machine %d has room for %d", now.Regions[at], moving.Move.To, member.Capacity)
		}
		if _, err := g.nodes[g.cm()].onRefuse(g.nodes[0].self, []byte("?")); err == nil {
			t.Error("a request that is none is taken")
		}
		g.moveUntil("the machine is empty, with the help of the others", func(c *cluster.Configuration) bool { return replicasAt(c, drained) == 0 && !isMoving(c) })
	})
}

// While moves are held at the CM none begins and none ends; when they are released they go on.
func TestHeldMoves(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		for i := range 8 {
			g.allocate(rdma.MachineID(i % 4))
		}
		cm, drained := g.cm(), g.others()[0]
		var release []func()
		hold := func() { g.at(cm, func(n *node) { release = append(release, n.HoldMoves(), n.HoldMoves()) }) }
		free := func() {
			g.at(cm, func(*node) {
				for _, f := range release {
					f()
				}
			})
			release = nil
		}
		hold()
		g.at(cm, func(n *node) {
			if err := n.Drain(context.Background(), drained, false); err != nil {
				t.Error(err)
			}
		})
		g.world.Outside().Sleep(20 * leaseLength)
		if c := g.settled(4); isMoving(c) {
			t.Errorf("%+v", c)
		}
		free()
		g.until("a region moves", func() bool { return isMoving(g.cmConfig()) })
		hold()
		g.until("nothing is changed any more", func() bool { return !g.nodes[cm].IsChanging() })
		before := g.settled(4)
		g.fill()
		g.world.Outside().Sleep(20 * leaseLength)
		if c := g.settled(4); c.ID != before.ID {
			t.Errorf("configuration %d follows %d", c.ID, before.ID)
		}
		free()
		g.moveUntil("the machine is empty", func(c *cluster.Configuration) bool { return replicasAt(c, drained) == 0 && !isMoving(c) })
	})
}

// While a machine makes regions, primaries are handed over once in balanceDelay at most, although the
// machines are too uneven again much earlier. While moves are held at the CM, none is handed over.
func TestHandoversPause(t *testing.T) {
	simulate(t, sim.Options{Seed: 5}, 3, 3, func(g *group) {
		begin, before := g.world.Now(), g.settled(3)
		const pauses = 4
		for g.world.Now() < begin+pauses*balanceDelay*leaseLength {
			g.allocate(0)
			g.world.Outside().Sleep(4 * leaseLength)
		}
		after := g.settled(3)
		if n := after.ID - before.ID; n < 2 || n > pauses {
			t.Errorf("%d configurations in %d times balanceDelay, in which %d regions were made", n, pauses, len(after.Regions))
		}
		if after.PrimaryOf(1) == 0 || after.PrimaryOf(2) == 0 {
			t.Errorf("nothing is handed over: %+v", after.Regions)
		}
		var release func()
		g.at(g.cm(), func(n *node) { release = n.HoldMoves() })
		held := g.settled(3)
		for range 12 {
			g.allocate(0)
		}
		g.world.Outside().Sleep(2 * balanceDelay * leaseLength)
		if c := g.settled(3); c.ID != held.ID {
			t.Errorf("configuration %d follows %d", c.ID, held.ID)
		}
		g.at(g.cm(), func(*node) { release() })
		g.until("primaries are handed over", func() bool { return g.cmConfig().ID > held.ID })
		if c := g.settled(3); c.ID != held.ID+1 || c.PrimaryOf(0) > len(c.Regions)/3+1 {
			t.Errorf("machine 0 is the primary of %d regions in configuration %d, after %d", c.PrimaryOf(0), c.ID, held.ID)
		}
	})
}

// A request is over, and not granted, when the machine has left before.
func TestDrainOfWhoLeaves(t *testing.T) {
	simulate(t, sim.Options{}, 5, 2, func(g *group) {
		g.allocate(0)
		leaver, cm := g.others()[0], g.cm()
		g.world.Machine(leaver).Kill()
		g.settled(4)
		g.at(cm, func(n *node) {
			if err := n.answerDrain(drainRequest{Machine: leaver}); !errors.Is(err, cluster.ErrCannotDrain) {
				t.Errorf("a machine that has left: %v", err)
			}
			if err := n.answerDrain(drainRequest{Machine: g.others()[0]}); !errors.Is(err, errChanging) {
				t.Errorf("a machine that is back: %v", err)
			}
			if err := n.answerDrain(drainRequest{Machine: leaver, Undo: true}); err != nil {
				t.Errorf("undo: %v", err)
			}
			n.evict(ErrEvicted)
			if err := n.answerDrain(drainRequest{Machine: leaver, Undo: true}); !errors.Is(err, recovery.ErrNotMember) {
				t.Errorf("at who is no member: %v", err)
			}
		})
	})
}
