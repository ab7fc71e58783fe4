package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// resize asks a machine for another number of replicas, again and again while that may help.
func (g *group) resize(by rdma.MachineID, replicas int) (err error) {
	g.Helper()
	g.at(by, func(n *node) {
		for err = n.Resize(context.Background(), replicas); err != nil && IsPassing(err); {
			err = n.Resize(context.Background(), replicas)
		}
	})
	return err
}

// haveAll returns whether all regions have n replicas, all of them filled, and none is being resized.
func haveAll(n int) func(c *cluster.Configuration) bool {
	return func(c *cluster.Configuration) bool {
		return !slices.ContainsFunc(c.Regions, func(p cluster.Placement) bool {
			return len(p.Replicas()) != n || len(p.Filling) > 0 || p.Had != 0
		})
	}
}

// Any member can ask. Regions grow and shrink at once, and asking again changes nothing.
func TestResizedByAnyMember(t *testing.T) {
	for by := range rdma.MachineID(4) {
		simulate(t, sim.Options{Seed: uint64(by)}, 4, 2, func(g *group) {
			for i := range 12 {
				g.allocate(rdma.MachineID(i % 4))
			}
			for _, n := range []int{3, 1, 4, 2} {
				if err := g.resize(by, n); err != nil || g.nodes[by].Configuration().Replicas != n {
					t.Fatalf("%d replicas: %v", n, err)
				}
				begin := g.world.Now()
				g.moveUntil("all regions have that many replicas", haveAll(n))
				if took := g.world.Now() - begin; took > balanceDelay*leaseLength/2 {
					t.Errorf("%d replicas after %v", n, took)
				}
				before := g.settled(4)
				if err := g.resize(by, n); err != nil || g.settled(4).Revision != before.Revision {
					t.Errorf("asked again: %v, revision %d after %d", err, g.settled(4).Revision, before.Revision)
				}
			}
		})
	}
}

// What is impossible is said to whoever asks, and nothing changes.
func TestResizeRefused(t *testing.T) {
	simulate(t, sim.Options{}, 3, 2, func(g *group) {
		g.allocate(0)
		before := g.settled(3)
		for _, id := range before.Machines {
			for n, text := range map[int]string{4: "in 3 failure domains", 0: "0 replicas are none"} {
				if err := g.resize(id, n); !errors.Is(err, cluster.ErrCannotResize) || !strings.Contains(err.Error(), text) {
					t.Errorf("machine %d: %v, want %q", id, err, text)
				}
			}
		}
		if c := g.settled(3); c.Revision != before.Revision {
			t.Errorf("revision %d, then %d", before.Revision, c.Revision)
		}
		cm := g.nodes[g.cm()]
		if _, err := cm.onResize(g.nodes[0].self, []byte("?")); err == nil {
			t.Error("a request that is none is granted")
		}
		if err := g.nodes[g.others()[0]].beginResize(cm.self, resizeRequest{3}); !errors.Is(err, recovery.ErrNotCM) {
			t.Errorf("at a machine that is not the CM: %v", err)
		}
		for name, x := range map[string]struct {
			at       *node
			n        int
			requests []resizeRequest
			want     error
			text     string
		}{
			"granted":               {cm, 2, nil, nil, ""},
			"not yet":               {cm, 3, []resizeRequest{{3}}, errChanging, ""},
			"another one was asked": {cm, 3, []resizeRequest{{1}}, cluster.ErrCannotResize, "somebody has asked for another number meanwhile"},
			"impossible meanwhile":  {cm, 4, nil, cluster.ErrCannotResize, "in 3 failure domains"},
			"the CM is another one": {g.nodes[g.others()[0]], 3, []resizeRequest{{3}}, recovery.ErrNotCM, ""},
		} {
			x.at.mu.resizes = x.requests
			err := x.at.answerResize(resizeRequest{x.n})
			x.at.mu.resizes = nil
			if !errors.Is(err, x.want) || x.text != "" && !strings.Contains(err.Error(), x.text) {
				t.Errorf("%s: %v, want %v", name, err, x.want)
			}
		}
	})
}

// Of two who ask for different numbers at a time, the later one gets it; the other one is told, and does not turn it back.
func TestResizeIsOvertaken(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		g.allocate(0)
		g.settled(4)
		cm := g.nodes[g.cm()]
		var first error
		isTold := false
		g.at(g.cm(), func(n *node) {
			p := g.world.Machine(cm.self.Machine).Process()
			n.cfg.Clock.Lock(&n.change) // no configuration is made before both have asked
			defer n.change.Unlock()
			p.Go(func() {
				_, first = n.onResize(n.self, []byte(`{"Replicas":3}`))
				isTold = true
			})
			for hasCome := false; !hasCome; p.Sleep(time.Microsecond) {
				n.mu.Lock()
				hasCome = len(n.mu.resizes) > 0
				n.mu.Unlock()
			}
			if err := n.beginResize(n.self, resizeRequest{1}); err != nil {
				t.Error(err)
			}
		})
		g.until("it is answered", func() bool { return isTold })
		if !errors.Is(first, cluster.ErrCannotResize) || !strings.Contains(first.Error(), "another number") {
			t.Error(first)
		}
		g.moveUntil("all regions have one replica", haveAll(1))
		if c := g.settled(4); c.Replicas != 1 {
			t.Errorf("%d replicas", c.Replicas)
		}
	})
}

// A request that has become impossible since it came is dropped.
func TestResizeThatBecomesImpossible(t *testing.T) {
	simulate(t, sim.Options{}, 3, 2, func(g *group) {
		g.allocate(0)
		cm := g.nodes[g.cm()]
		two, _ := g.settled(3).Without([]rdma.MachineID{g.others()[0]}, cm.self.Machine)
		r := resizeRequest{3}
		cm.mu.resizes = []resizeRequest{r}
		if _, err := cm.resized(two, r); !errors.Is(err, cluster.ErrCannotResize) || len(cm.mu.resizes) > 0 {
			t.Errorf("%v, requests %v", err, cm.mu.resizes)
		}
	})
}

// While a member does not know that regions may have different numbers of replicas, whoever is asked refuses.
func TestResizeBeforeItsVersion(t *testing.T) {
	c := movingInstance(4)
	c.Speaks = protocol.Moves
	m := &Machine{}
	m.mu.current = c
	if err := m.Resize(t.Context(), 3); !errors.Is(err, cluster.ErrCannotResize) || !strings.Contains(err.Error(), "version 4 is needed") {
		t.Errorf("%v", err)
	}
}

// Whoever is the CM goes on, also after all machines have restarted at once: the configuration says what is left.
func TestResizeGoesOn(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, n := range []int{1, 3} {
			simulate(t, sim.Options{Seed: uint64(n)}, 4, 2, func(g *group) {
				for i := range 12 {
					g.allocate(rdma.MachineID(i % 4))
				}
				if err := g.resize(g.others()[0], n); err != nil {
					t.Fatal(err)
				}
				dead := []rdma.MachineID{g.cm()}
				if all {
					dead = g.cmConfig().Machines
				}
				for _, id := range dead {
					g.world.Machine(id).Kill()
				}
				for _, id := range dead {
					g.boot(id, nil)
				}
				g.moveUntil("all regions have the new number", haveAll(n))
				if c := g.settled(4); c.Replicas != n || len(c.Unavailable())+len(c.Lost) > 0 {
					t.Errorf("%+v", c)
				}
			})
		}
	}
}

// Nothing grows or shrinks while somebody compares replicas.
func TestHeldResize(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		for i := range 4 {
			g.allocate(rdma.MachineID(i % 4))
		}
		var release func()
		g.at(g.cm(), func(n *node) { release = n.HoldMoves() })
		if err := g.resize(g.cm(), 3); err != nil {
			t.Fatal(err)
		}
		g.world.Outside().Sleep(10 * leaseLength)
		g.at(g.cm(), func(n *node) {
			if s := n.Status(); s.MovesAwait != "a check that compares replicas" {
				t.Errorf("the CM waits for %q", s.MovesAwait)
			}
		})
		if c := g.settled(4); len(c.Resizing()) != 4 || haveAll(2)(c) {
			t.Errorf("%+v", c.Regions)
		}
		g.at(g.cm(), func(*node) { release() })
		g.moveUntil("all regions have three replicas", haveAll(3))
	})
}

// A machine that has no room for what grows there refuses it, and the regions grow elsewhere.
func TestGrowthRefused(t *testing.T) {
	simulate(t, sim.Options{}, 4, 2, func(g *group) {
		for i := range 8 {
			g.allocate(rdma.MachineID(i % 4))
		}
		if err := g.resize(0, 3); err != nil {
			t.Fatal(err)
		}
		g.until("regions grow", func() bool { return len(g.cmConfig().Regions[0].Filling) > 0 })
		c := g.settled(4)
		at := slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.Had != 0 && len(p.Replicas()) > p.Had })
		full := c.Regions[at].Filling[0]
		g.at(full, func(n *node) {
			if err := n.Refuse(context.Background(), c.ID, []region.ID{c.Regions[at].Region}); err != nil {
				t.Error(err)
			}
		})
		g.until("it does not grow there", func() bool { return !g.cmConfig().Regions[at].Has(full) })
		if member, _ := g.cmConfig().Member(full); member.Capacity == 0 {
			t.Errorf("machine %d has room: %+v", full, member)
		}
		g.moveUntil("it has three replicas all the same", func(c *cluster.Configuration) bool {
			p := c.Regions[at]
			return len(p.Backups) == 2 && len(p.Filling) == 0 && !p.Has(full)
		})
	})
}
