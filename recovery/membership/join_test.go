package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// A machine that was killed and comes back at once joins as another life: its earlier
// one is suspected when it asks, not only when its lease runs out.
func TestComesBack(t *testing.T) {
	simulate(t, sim.Options{Seed: 20}, 4, 2, func(g *group) {
		before := g.settled(4)
		who := g.others()[0]
		p := g.allocate(who)
		g.world.Machine(who).Kill()
		g.boot(who, nil)
		g.until("there is a configuration without it, then one with it", func() bool { return g.cmConfig().ID >= before.ID+2 })
		c := g.settled(4)
		if n := g.nodes[who]; n.started != nil || !n.isMember(c) {
			t.Errorf("%v", n.started)
		}
		if now, _ := c.Placement(p.Region); now.Primary == who || slices.Contains(now.Filling, now.Primary) {
			t.Errorf("the region is at %+v", now)
		}
	})
}

// A joining machine waits until no recovery is going on.
func TestJoinWaitsForRecovery(t *testing.T) {
	simulate(t, sim.Options{Seed: 21}, 4, 2, func(g *group) {
		before := g.settled(4)
		slow := g.nodes[g.others()[1]]
		release := false
		slow.host.commit = func(ctx context.Context) error {
			for !release && ctx.Err() == nil {
				slow.process.Sleep(time.Millisecond)
			}
			return nil
		}
		g.world.Machine(g.others()[0]).Kill()
		g.until("recovery has begun", func() bool { return slices.Contains(slow.host.log, fmt.Sprintf("commit %d", before.ID+1)) })
		joiner := g.boot(9, nil)
		g.world.Outside().Sleep(300 * time.Millisecond)
		if s := g.nodes[before.CM].Status(); !s.Recovering || !slices.Equal(s.Joining, []rdma.MachineID{9}) {
			t.Errorf("%+v", s)
		}
		if joiner.isUp || g.cmConfig().ID != before.ID+1 {
			t.Error("admitted while recovery is going on")
		}
		release = true
		if c := g.settled(4); !slices.Contains(c.Machines, 9) {
			t.Errorf("machines %v", c.Machines)
		}
	})
}

// A machine that asks to join and stops before its turn is dropped joinPatience after it has asked,
// and no configuration contains it.
func TestJoinerThatStops(t *testing.T) {
	simulate(t, sim.Options{Seed: 21}, 4, 2, func(g *group) {
		before := g.settled(4)
		slow := g.nodes[g.others()[1]]
		release := false
		slow.host.commit = func(ctx context.Context) error {
			for !release && ctx.Err() == nil {
				slow.process.Sleep(time.Millisecond)
			}
			return nil
		}
		g.world.Machine(g.others()[0]).Kill()
		g.until("recovery has begun", func() bool { return slices.Contains(slow.host.log, fmt.Sprintf("commit %d", before.ID+1)) })
		joins := func() bool { return slices.Equal(g.nodes[before.CM].Status().Joining, []rdma.MachineID{9}) }
		g.boot(9, nil)
		g.until("it asks to join", joins)
		g.world.Outside().Sleep(10 * leaseLength)
		g.world.Machine(9).Kill()
		begin := g.world.Now()
		g.until("its request is dropped", func() bool { return !joins() })
		if took := g.world.Now() - begin; took < (joinPatience-8)*leaseLength || took > joinPatience*leaseLength+time.Millisecond {
			t.Errorf("dropped after %v", took)
		}
		release = true
		g.settled(3)
		g.world.Outside().Sleep(20 * leaseLength)
		if c := g.cmConfig(); c.ID != before.ID+1 {
			t.Errorf("configuration %d of %v follows %d", c.ID, c.Machines, before.ID)
		}
	})
}

// A machine that asks to be let in, because the configuration is without it, does not
// apply one before, that had it, of which NEW-CONFIG comes late: it would be left out and
// let in again in one life, and take what it has for all there is.
func TestLateConfigurationOfWhoAsks(t *testing.T) {
	simulate(t, sim.Options{Seed: 83}, 3, 3, func(g *group) {
		g.settled(3)
		g.world.Machine(2).Kill()
		g.settled(2)
		g.change = func(cfg *Config) { cfg.Store = unreachable{cfg.Store} }
		n := g.boot(2, nil)
		failed := g.events["failed"]
		g.until("the machine starts", func() bool { return n.Machine != nil && g.events["failed"] > failed })
		without, err := g.store.MemoryStore.Load()
		if err != nil {
			t.Fatal(err)
		}
		with := without.Clone()
		with.AddMember(n.cfg.Self)
		without = without.Clone()
		without.ID++
		g.at(2, func(n *node) {
			if n.isMemberBefore(without) {
				t.Error("a machine that has just started is a member")
			}
			if _, err := n.applyConfiguration(with); !errors.Is(err, recovery.ErrSuperseded) || n.Configuration() != nil {
				t.Errorf("a configuration before the one without it: %v", err)
			}
		})
	})
}
