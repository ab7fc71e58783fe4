package membership

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// TestPaper3_RegionAllocationInTwoPhases: the CM has the replicas prepare, and
// only when all have reported success is the mapping valid, and known to them.
// Other machines fetch it on demand.
func TestPaper3_RegionAllocationInTwoPhases(t *testing.T) {
	simulate(t, sim.Options{Seed: 27}, 5, 3, func(g *group) {
		before := g.settled(5)
		primary := g.others()[0]
		p := g.allocate(primary)
		for id, n := range g.nodes {
			if prepared := slices.Contains(n.host.prepared, p.Region); prepared != p.Has(id) || slices.Contains(n.host.announced, p.Region) != p.Has(id) {
				t.Errorf("machine %d: prepared %v, announced %v, replicas %v", id, n.host.prepared, n.host.announced, p.Replicas())
			}
			g.at(id, func(n *node) {
				for range 2 { // asked for, then cached
					if got, err := n.Placement(context.Background(), p.Region); err != nil || got.Primary != primary {
						t.Errorf("machine %d: %+v, %v", id, got, err)
					}
				}
				if _, err := n.Placement(context.Background(), 99); !errors.Is(err, ErrNoRegion) {
					t.Errorf("machine %d: %v", id, err)
				}
			})
		}
		backup := g.nodes[p.Backups[0]]
		backup.host.prepare = region.ErrFull
		g.at(primary, func(n *node) {
			if _, err := n.Allocate(context.Background(), primary, p.Region); !errors.Is(err, region.ErrFull) {
				t.Errorf("a replica has no room: %v", err)
			}
		})
		backup.host.prepare = nil
		c := g.cmConfig()
		if len(c.Regions) != 1 || c.ID != before.ID || c.Revision != before.Revision+1 {
			t.Errorf("%+v", c)
		}
		g.at(primary, func(n *node) {
			near, err := n.Allocate(context.Background(), primary, p.Region)
			if err != nil || near.Group != p.Region || !slices.Equal(near.Backups, p.Backups) {
				t.Errorf("%+v, %v", near, err)
			}
		})
		g.world.Machine(g.others()[1]).Kill()
		if c := g.settled(4); len(c.Regions) != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// A backup that has been filled can be promoted, and says so to the CM; the root
// object is the first that was proposed.
func TestFilledAndRoot(t *testing.T) {
	simulate(t, sim.Options{Seed: 28}, 4, 2, func(g *group) {
		p := g.allocate(g.others()[0])
		g.world.Machine(p.Primary).Kill()
		c := g.settled(3)
		now, _ := c.Placement(p.Region)
		if len(now.Filling) != 1 {
			t.Fatalf("%+v", now)
		}
		g.at(now.Filling[0], func(n *node) {
			for range 2 {
				if err := n.Filled(context.Background(), c.ID, []region.ID{p.Region}); err != nil {
					t.Error(err)
				}
			}
		})
		if c := g.cmConfig(); len(c.Regions[0].Filling) > 0 {
			t.Errorf("%+v", c.Regions)
		}
		want := region.MakePtr(region.MakeAddr(p.Region, 640), 3, 4)
		for i, m := range []rdma.MachineID{g.others()[0], g.cm(), g.others()[1]} {
			proposed := []region.Ptr{{}, want, region.MakePtr(region.MakeAddr(9, 640), 1, 1)}[i]
			g.at(m, func(n *node) {
				if got, err := n.Root(context.Background(), proposed); err != nil || (got != want) != (i == 0) {
					t.Errorf("root %v, %v", got, err)
				}
			})
		}
	})
}

// A report that replicas are filled has no effect in a later configuration: the machine may have
// dropped a replica since and begun another.
func TestFilledInAnEarlierConfiguration(t *testing.T) {
	simulate(t, sim.Options{Seed: 28}, 5, 2, func(g *group) {
		p := g.allocate(g.others()[0])
		g.world.Machine(p.Primary).Kill()
		before := g.settled(4)
		now, _ := before.Placement(p.Region)
		if len(now.Filling) != 1 {
			t.Fatalf("%+v", now)
		}
		other := slices.IndexFunc(before.Machines, func(m rdma.MachineID) bool { return m != before.CM && !now.Has(m) })
		if other < 0 {
			t.Fatalf("%+v", before)
		}
		g.world.Machine(before.Machines[other]).Kill()
		g.settled(3)
		g.at(now.Filling[0], func(n *node) {
			if err := n.Filled(context.Background(), before.ID, []region.ID{p.Region}); !errors.Is(err, errChanging) {
				t.Errorf("filled in configuration %d: %v", before.ID, err)
			}
		})
		if c := g.cmConfig(); !slices.Equal(c.Regions[0].Filling, now.Filling) {
			t.Errorf("%+v", c.Regions)
		}
	})
}

// A machine without room for a replica keeps what it has; another gets it. So it is if the
// store fails meanwhile.
func TestRefusedReplica(t *testing.T) {
	for _, fails := range []string{"", "before", "after"} {
		simulate(t, sim.Options{Seed: 29}, 5, 2, func(g *group) {
			p := g.allocate(g.others()[0])
			for _, n := range g.nodes {
				if n.self.Machine != g.cm() {
					n.host.refuse = []region.ID{p.Region}
				}
			}
			before := g.cmConfig()
			hasFailed := false
			g.store.fail = func(_ rdma.MachineID, old uint64, next *cluster.Configuration) (err error) {
				if fails == "" || hasFailed || next.ID != before.ID+2 {
					return nil
				}
				if hasFailed = true; fails == "after" {
					err = g.store.MemoryStore.CompareAndSwap(old, next)
				}
				return errors.Join(cluster.ErrUnreachable, err)
			}
			victim := p.Primary
			g.world.Machine(victim).Kill()
			c := g.settled(4)
			now, _ := c.Placement(p.Region)
			if len(now.Replicas()) > 2 || slices.ContainsFunc(now.Filling, func(m rdma.MachineID) bool { return m != g.cm() }) || hasFailed != (fails != "") {
				t.Errorf("the store has failed: %v, %q: %+v", hasFailed, fails, now)
			}
		})
	}
}

// A region that is being made does not delay the recovery from a failure.
func TestAllocationGivesWay(t *testing.T) {
	simulate(t, sim.Options{Seed: 33}, 5, 3, func(g *group) {
		p := g.allocate(g.others()[0])
		victim := p.Backups[0]
		if victim == g.cm() {
			victim = p.Backups[1]
		}
		g.lines = nil
		g.world.Machine(victim).Kill()
		g.at(p.Primary, func(n *node) {
			if _, err := n.Allocate(context.Background(), p.Primary, p.Region); err != nil && !IsPassing(err) {
				t.Errorf("%v", err)
			}
		})
		g.settled(4)
		if l := g.lines[0]; l.Probed.Sub(l.Suspect) > 3*leaseLength {
			t.Errorf("%v", l)
		}
	})
}

// A call to a dead CM fails, with an error that says that it may be tried again, once there is
// another CM.
func TestAsksADeadCM(t *testing.T) {
	simulate(t, sim.Options{Seed: 35}, 4, 2, func(g *group) {
		who := g.others()[0]
		g.world.Machine(g.cm()).Kill()
		g.at(who, func(n *node) {
			if _, err := n.Allocate(context.Background(), who, 0); !IsPassing(err) {
				t.Errorf("%v", err)
			}
		})
		g.settled(3)
		if p := g.allocate(who); p.Primary != who {
			t.Errorf("%+v", p)
		}
		n := g.nodes[who]
		if s := n.Status(); s.Err != nil || s.Recovering || len(s.Suspects)+len(s.Joining) > 0 || len(s.Configuration.Machines) != 3 {
			t.Errorf("%+v", s)
		}
	})
}
