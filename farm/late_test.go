package farm

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// A routine that does not run before the next configuration is there changes nothing that was
// recorded about the next one: that it is committed, and that its transactions are recovered.
func TestLateRoutinesChangeNothing(t *testing.T) {
	for _, step := range []recovery.Step{recovery.StepCommitted, recovery.StepSettled} {
		aFewMembers(t, 53, 3, 3, func(g *members) {
			c, _ := g.store.Load()
			slow, dead := (c.CM+1)%3, (c.CM+2)%3
			slept := false
			g.recovering = func(id rdma.MachineID, s recovery.Step) {
				if id == slow && s == step && !slept {
					slept = true
					g.world.Machine(id).Process().Sleep(50 * time.Millisecond)
				}
			}
			g.kill(dead)
			g.until("the routine is late", func() bool { return slept })
			g.at(c.CM, func(m *Member) { m.membership.Renew() })
			m := g.up[slow]
			g.until("another configuration is there", func() bool { return m.settledFor.Load() > uint32(c.ID)+1 })
			g.world.Outside().Sleep(100 * time.Millisecond)
			now := m.membership.Configuration().ID
			if last, isKnown := (*host)(m).Committed(); last != now || !isKnown || m.settledFor.Load() != uint32(now) {
				t.Errorf("%v: in configuration %d, committed %d, settled for %d", step, now, last, m.settledFor.Load())
			}
		})
	}
}

// The routines that commit a configuration are late at two machines. The next one is
// committed and used; then all go down, and the last full replica does not come back. Nobody
// takes the memory of a machine that was left out before for all there is.
func TestLateCommitLosesNothing(t *testing.T) {
	aFewMembers(t, 60, 4, 2, func(g *members) {
		c, _ := g.store.Load()
		cm := c.CM // is to be another machine than those that have the root
		g.kill(cm)
		g.until("it is out", func() bool { c, _ := g.store.Load(); return len(c.Machines) == 3 })
		g.boot(cm)
		g.until("it is back", func() bool { return g.up[cm] != nil && g.whole() })
		c, _ = g.store.Load()
		p, _ := c.Placement(c.Root.Addr.Region())
		first, last := p.Primary, p.Backups[0]
		if c.CM == first || c.CM == last {
			t.Fatalf("unsuitable: CM %d, %+v", c.CM, p)
		}
		late, isArmed := 0, true
		g.recovering = func(id rdma.MachineID, s recovery.Step) {
			switch {
			case id == first || id == last:
			case s == recovery.StepCommitted && isArmed:
				late++
				g.world.Machine(id).Process().Sleep(200 * time.Millisecond)
			case s == recovery.StepFilling:
				g.world.Machine(id).Process().Sleep(time.Hour)
			}
		}
		g.at(c.CM, func(m *Member) { m.membership.Renew() })
		g.until("they are about to commit", func() bool { return late == 2 })
		isArmed = false
		g.kill(first)
		g.until("it is out", func() bool { c, _ := g.store.Load(); return len(c.Machines) == 3 })
		g.add(c.CM, 3)
		g.world.Outside().Sleep(400 * time.Millisecond)
		now, _ := g.store.Load()
		for _, id := range now.Machines {
			g.kill(id)
		}
		g.recovering = nil
		for _, id := range c.Machines {
			if id != last {
				g.boot(id)
			}
		}
		g.until("three are up", func() bool { c, _ := g.store.Load(); return len(c.Machines) == 3 && c.ID > now.ID+1 })
		g.world.Outside().Sleep(time.Second)
		now, _ = g.store.Load()
		if q, _ := now.Placement(p.Region); q.IsAvailable() || len(q.Away) != 1 || q.Away[0].Machine != last {
			t.Errorf("%+v, want it to wait for machine %d", q, last)
		}
		g.boot(last)
		g.until("all are back", func() bool { return len(g.up) == 4 && g.whole() })
		g.sees(3, 1)
	})
}
