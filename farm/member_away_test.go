package farm

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Machines are killed one after the other, each as soon as the one before serves again, while
// transactions run at all of them. A machine that has come back lacks most of its regions, and its
// operations wait for the last machine that has everything. Nothing is lost.
func TestRollingKills(t *testing.T) {
	for seed := range uint64(6) {
		replicas := 2 + int(seed%2)
		n := 3 + 2*int(seed/2%2)
		aFewMembers(t, seed, n, replicas, func(g *members) {
			c := newCounting(g)
			for i := range n {
				c.start(rdma.MachineID(i))
			}
			for round := range 3 * n {
				id := rdma.MachineID(round % n)
				g.kill(id)
				g.boot(id)
				g.until("the machine serves again", func() bool { return g.up[id] != nil })
				c.start(id)
			}
			c.end()
		})
	}
}

// All but one of the machines with a region die at once, then the last one; they come
// back in any order.
func TestAllReplicasAreAway(t *testing.T) {
	for seed := range uint64(8) {
		aFewMembers(t, seed, 5, 2, func(g *members) {
			c := newCounting(g)
			for i := range 5 {
				c.start(rdma.MachineID(i))
			}
			config, _ := g.store.Load()
			p, _ := config.Placement(g.up[0].Root().Addr.Region())
			away := p.Replicas()
			if seed%2 == 0 {
				slices.Reverse(away)
			}
			for _, id := range away {
				g.kill(id)
			}
			g.until("the region is unavailable", func() bool { c, _ := g.store.Load(); return len(c.Unavailable()) > 0 })
			// Everything else settles, without the regions that wait.
			g.until("the rest is settled", func() bool {
				c, _ := g.store.Load()
				for _, m := range g.up {
					if m.settledFor.Load() != uint32(c.ID) {
						return false
					}
				}
				return len(c.Machines) == 3
			})
			if seed%4 >= 2 { // what is parked outlives those who have parked it
				for id := range rdma.MachineID(5) {
					if g.up[id] != nil {
						g.kill(id)
						g.boot(id)
						g.until("the machine is a member again", func() bool { return isMember(g, id) })
					}
				}
			}
			for _, id := range away {
				g.boot(id)
				g.until("the machine serves again", func() bool { return g.up[id] != nil })
			}
			c.end()
		})
	}
}

func isMember(g *members, id rdma.MachineID) bool {
	c, _ := g.store.Load()
	_, in := c.Member(id)
	return in && g.up[id] != nil
}

// A counting makes machines add to a byte, and knows which values it may have.
type counting struct {
	*members
	begun, committed int
	stopped          bool
	adding           map[*Member]bool // the lives that add
}

const countedByte = 7

func newCounting(g *members) *counting { return &counting{members: g, adding: make(map[*Member]bool)} }

// start makes a machine add until its life ends.
func (c *counting) start(id rdma.MachineID) {
	m := c.up[id]
	c.adding[m] = true
	c.world.Machine(id).Process().Go(func() {
		defer delete(c.adding, m)
		for !c.stopped {
			c.begun++
			switch err := increment(m, countedByte); {
			case err == nil:
				c.committed++
			case errors.Is(err, outcome.ErrEvicted) || errors.Is(err, outcome.ErrInDoubt):
				return
			case !errors.Is(err, outcome.ErrConflict):
				c.Errorf("machine %d: %v", id, err)
				return
			}
		}
	})
}

// end waits until everything is whole and checks the byte, which counts modulo 256,
// and all replicas.
func (c *counting) end() {
	c.Helper()
	c.stopped = true
	c.until("everything is whole", func() bool {
		now, _ := c.store.Load()
		return c.whole() && len(now.Unavailable()) == 0
	})
	c.until("the last additions have ended", func() bool {
		for _, m := range c.up {
			if c.adding[m] {
				return false
			}
		}
		return true
	})
	now, _ := c.store.Load()
	if len(now.Lost) > 0 {
		c.Errorf("regions %v are lost", now.Lost)
	}
	var first rdma.MachineID
	for c.up[first] == nil {
		first++
	}
	more := int(c.value(first, countedByte)-byte(c.committed)) % 256
	if more < 0 || more > c.begun-c.committed {
		c.Errorf("%d after %d of %d were acknowledged", c.value(first, countedByte), c.committed, c.begun)
	}
	var all []*Member
	for _, m := range c.up {
		all = append(all, m)
	}
	c.at(first, func(m *Member) {
		now, err := awaitWhole(m.ctx, all)
		if err != nil {
			c.Error(err)
			return
		}
		faults, err := CheckMembers(now, all, slices.Values([]region.Ptr{}))
		if err != nil || len(faults) > 0 {
			c.Errorf("%v, %v", faults, err)
		}
	})
	c.Logf("%d of %d acknowledged, configuration %d", c.committed, c.begun, now.ID)
}

// A machine that is replaced while it is away gets its replicas back, in place of those
// that are being made elsewhere.
func TestReturnsBeforeItsReplacementIsFilled(t *testing.T) {
	membersAtPace(t, data.Pace{Bytes: 4096, Interval: time.Second}, 5, 5, 3, func(g *members) {
		g.allocateLarge()
		c, _ := g.store.Load()
		p := c.Regions[slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.Primary == 0 })]
		id, who := p.Region, p.Backups[0]
		g.kill(who)
		g.until("another machine is its replacement", func() bool {
			c, _ := g.store.Load()
			p, _ := c.Placement(id)
			return len(p.Filling) == 1 && p.Filling[0] != who
		})
		g.boot(who)
		g.until("the machine serves again", func() bool { return g.up[who] != nil })
		c, _ = g.store.Load()
		if p, _ := c.Placement(id); !p.Has(who) {
			t.Errorf("machine %d has no replica of %+v", who, p)
		}
		g.until("everything is whole", g.whole)
	})
}
