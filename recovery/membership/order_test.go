package membership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
)

// order gives an order at a machine, again and again while that may help.
func (g *group) order(by rdma.MachineID, o cluster.Order) (err error) {
	g.Helper()
	g.at(by, func(n *node) {
		for err = n.Move(context.Background(), o); err != nil && IsPassing(err); {
			err = n.Move(context.Background(), o)
		}
	})
	return err
}

// somewhere returns an order that can be carried out: away from the primary of a region.
func (g *group) somewhere() cluster.Order {
	g.Helper()
	c := g.cmConfig()
	for _, to := range c.Machines {
		if o := (cluster.Order{Region: 1, Move: cluster.Move{From: c.Regions[0].Primary, To: to}}); c.CheckOrder(o) == nil {
			return o
		}
	}
	g.Fatalf("nothing can be ordered: %+v", c)
	return cluster.Order{}
}

// Any member can give an order. The replica moves at once, nobody moves it back, and giving the order
// again changes nothing.
func TestOrderedByAnyMember(t *testing.T) {
	for by := range rdma.MachineID(4) {
		simulate(t, sim.Options{Seed: uint64(by)}, 4, 2, func(g *group) {
			for i := range 4 {
				g.allocate(rdma.MachineID(i % 4))
			}
			o := g.somewhere()
			for range 2 {
				if err := g.order(by, o); err != nil || !g.nodes[by].Configuration().IsGranted(o) {
					t.Fatalf("%+v: %v", o, err)
				}
			}
			isThere := func(c *cluster.Configuration) bool {
				return c.Regions[0].Move == nil && c.Regions[0].Primary == o.To && !c.Regions[0].Has(o.From)
			}
			g.moveUntil("the replica has moved", isThere)
			g.world.Outside().Sleep(2 * balanceDelay * leaseLength)
			g.moveUntil("nothing moves", func(c *cluster.Configuration) bool { return !isMoving(c) })
			if c := g.settled(4); !isThere(c) || len(c.Regions[0].Pinned) != 1 {
				t.Errorf("%+v", c.Regions[0])
			}
			before := g.settled(4)
			if err := g.order(by, o); err != nil || g.settled(4).Revision != before.Revision {
				t.Errorf("the order again: %v, revision %d after %d", err, g.settled(4).Revision, before.Revision)
			}
		})
	}
}

// An order waits for replicas that are being filled, and for who holds moves. It begins nothing when
// whoever has given it has been told that it does not.
func TestOrderWaits(t *testing.T) {
	simulate(t, sim.Options{Seed: 3}, 4, 2, func(g *group) {
		for i := range 4 {
			g.allocate(rdma.MachineID(i % 4))
		}
		first := g.somewhere()
		if err := g.order(0, first); err != nil {
			t.Fatal(err)
		}
		var second cluster.Order
		c := g.cmConfig()
		for _, p := range c.Regions[1:] {
			for _, to := range c.Machines {
				if o := (cluster.Order{Region: p.Region, Move: cluster.Move{From: p.Primary, To: to}}); c.CheckOrder(o) == nil {
					second = o
				}
			}
		}
		cm := g.cm()
		once := func(by rdma.MachineID) (err error) {
			g.at(by, func(n *node) { err = n.Move(context.Background(), second) })
			return err
		}
		if err := once(cm); !IsPassing(err) || !strings.Contains(err.Error(), "the move waits for region 1, which moves") {
			t.Errorf("beside a move: %v", err)
		}
		if err := once(g.others()[0]); !IsPassing(err) || !strings.Contains(err.Error(), "the move waits for region 1, which moves") {
			t.Errorf("beside a move, at a machine that is not the CM: %v", err)
		}
		forgets := func() { g.world.Outside().Sleep(2*g.nodes[cm].orderWait() + leaseLength) }
		forgets()
		g.moveUntil("the first has moved", func(c *cluster.Configuration) bool { return !isMoving(c) })
		release := g.nodes[cm].HoldMoves()
		if err := once(cm); !IsPassing(err) || g.cmConfig().IsGranted(second) || !strings.Contains(err.Error(), "waits for a check that compares replicas") {
			t.Errorf("while moves are held: %v", err)
		}
		forgets()
		release()
		g.world.Outside().Sleep(10 * leaseLength)
		if g.cmConfig().IsGranted(second) {
			t.Error("an order is carried out that nobody has given for long")
		}
		if err := g.order(cm, second); err != nil {
			t.Error(err)
		}
	})
}

// An order that somebody gives again and again is kept in between, so that it comes before what balance or
// a drain would move next.
func TestOrderIsKept(t *testing.T) {
	simulate(t, sim.Options{Seed: 4}, 4, 2, func(g *group) {
		for i := range 8 {
			g.allocate(rdma.MachineID(i % 4))
		}
		cm := g.cm()
		g.at(cm, func(n *node) {
			if err := n.Drain(context.Background(), g.others()[0], false); err != nil {
				t.Error(err)
			}
		})
		g.until("regions move", func() bool { return isMoving(g.cmConfig()) })
		var o cluster.Order
		c := g.cmConfig()
		for _, p := range c.Regions {
			for _, to := range c.Machines {
				if x := (cluster.Order{Region: p.Region, Move: cluster.Move{From: p.Primary, To: to}}); p.Move == nil && !p.Has(g.others()[0]) && c.CheckOrder(x) == nil {
					o = x
				}
			}
		}
		g.at(cm, func(n *node) {
			if err := n.Move(context.Background(), o); !IsPassing(err) {
				t.Errorf("%+v beside a drain: %v", o, err)
			}
		})
		g.moveUntil("the first moves have ended", func(c *cluster.Configuration) bool { return !isMoving(c) || c.IsGranted(o) })
		if !g.cmConfig().IsGranted(o) {
			t.Errorf("%+v: %+v", o, g.cmConfig())
		}
	})
}

// An order for a region that balance moves at present waits until it has.
func TestOrderOfARegionThatMoves(t *testing.T) {
	simulate(t, sim.Options{Seed: 5}, 4, 2, func(g *group) {
		for i := range 4 {
			g.allocate(rdma.MachineID(i % 4))
		}
		first := g.somewhere()
		if err := g.order(0, first); err != nil {
			t.Fatal(err)
		}
		back := cluster.Order{Region: first.Region, Move: cluster.Move{From: first.To, To: first.From}}
		g.at(g.cm(), func(n *node) {
			if err := n.Move(context.Background(), back); !IsPassing(err) || !strings.Contains(err.Error(), "region 1, which moves") {
				t.Errorf("%+v: %v", back, err)
			}
		})
		g.moveUntil("the first has moved", func(c *cluster.Configuration) bool {
			p, _ := c.Placement(first.Region)
			return !p.Has(first.From) || c.IsGranted(back)
		})
		if err := g.order(g.others()[0], back); err != nil {
			t.Error(err)
		}
	})
}

// What else an order can wait for is named.
func TestOrderNamesWhatItWaitsFor(t *testing.T) {
	simulate(t, sim.Options{}, 3, 2, func(g *group) {
		g.allocate(0)
		g.settled(3)
		cm := g.nodes[g.cm()].Machine
		says := func(want string) {
			t.Helper()
			if got := cm.movesAwaitLocked(); got != want {
				t.Errorf("waits for %q, want %q", got, want)
			}
		}
		cm.mu.Lock()
		defer cm.mu.Unlock()
		says("another change of the configuration")
		leaver := g.nodes[g.others()[0]].self
		cm.mu.leavers[leaver] = false
		says("a machine that is about to stop")
		delete(cm.mu.leavers, leaver)
		settled := cm.mu.isSettled
		cm.mu.isSettled = nil
		says("transactions that are being recovered")
		cm.mu.isSettled = settled
	})
}

// A CM of an earlier program, which moves regions but takes no orders, is named at once.
func TestOrderToAnEarlierProgram(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		g.allocate(0)
		o, by := g.somewhere(), g.others()[0]
		g.nodes[g.cm()].cfg.Endpoint.Handle(kindMove, nil)
		g.at(by, func(n *node) {
			begin := g.world.Now()
			err := n.Move(context.Background(), o)
			if !errors.Is(err, cluster.ErrCannotMove) || !strings.Contains(err.Error(), "runs an earlier program, which takes no orders: start it with this one") {
				t.Errorf("%v", err)
			}
			if took := g.world.Now() - begin; took > leaseLength {
				t.Errorf("after %v, with leases of %v", took, leaseLength)
			}
		})
	})
}

// What cannot be moved is said to whoever asks, and nothing changes.
func TestOrderRefused(t *testing.T) {
	simulate(t, sim.Options{}, 3, 3, func(g *group) {
		g.allocate(0)
		before := g.settled(3)
		for _, id := range before.Machines {
			for o, text := range map[cluster.Order]string{
				{Region: 1, Move: cluster.Move{From: 0, To: 9}}: "machine 9 is no member",
				{Region: 8, Move: cluster.Move{From: 0, To: 1}}: "no region 8",
				{Region: 1, Move: cluster.Move{From: 0, To: 1}}: "has a replica of region 1 already",
			} {
				if err := g.order(id, o); !errors.Is(err, cluster.ErrCannotMove) || !strings.Contains(err.Error(), text) {
					t.Errorf("machine %d: %v, want %q", id, err, text)
				}
			}
		}
		if c := g.settled(3); c.Revision != before.Revision {
			t.Errorf("revision %d, then %d", before.Revision, c.Revision)
		}
		cm := g.nodes[g.cm()]
		if _, err := cm.onMove(g.nodes[0].self, []byte("?")); err == nil {
			t.Error("an order that is none is granted")
		}
		if err := g.nodes[g.others()[0]].beginOrder(cm.self, cluster.Order{}); err == nil {
			t.Error("a machine that is not the CM takes an order")
		}
	})
}

// An order that has become impossible since it was given is dropped, and what else moves goes on.
func TestOrderThatBecomesImpossible(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		g.allocate(0)
		o := g.somewhere()
		cm := g.nodes[g.cm()]
		base := g.settled(4)
		drained, err := base.Drain(o.To)
		if err != nil {
			t.Fatal(err)
		}
		cm.mu.orders = []orderRequest{{o, cm.cfg.Clock.Now().Add(time.Hour)}}
		if next, _ := cm.moveOn(drained); len(cm.mu.orders) > 0 || next != nil && next.IsGranted(o) {
			t.Errorf("orders %v, %+v", cm.mu.orders, next)
		}
	})
}

// While a member does not know moves, whoever is asked refuses an order.
func TestOrderBeforeTheVersionOfMoves(t *testing.T) {
	c := movingInstance(4)
	c.Speaks = 0
	for i := range c.Protocol {
		c.Protocol[i] = protocol.Range{Min: protocol.First, Max: protocol.Ranges}
	}
	m := &Machine{}
	m.mu.current = c
	if err := m.Move(t.Context(), cluster.Order{Region: 1}); !errors.Is(err, cluster.ErrCannotMove) || !strings.Contains(err.Error(), "version 3 is needed") {
		t.Errorf("%v", err)
	}
}
