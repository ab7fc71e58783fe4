package membership

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
)

// unreachable is a store that does not answer.
type unreachable struct{ cluster.Store }

func (unreachable) Load() (*cluster.Configuration, error) { return nil, cluster.ErrUnreachable }

// A machine was left out of a configuration that its CM did not live to have committed,
// and the last full replica is gone. Those who meet know that nobody has committed to the
// region since, one of them having a replica, and go on with the memory of the first.
func TestMeetingAfterAnUncommittedConfiguration(t *testing.T) {
	for _, isCommitted := range []bool{false, true} {
		simulate(t, sim.Options{Seed: 31}, 4, 2, func(g *group) {
			before := g.settled(4)
			left := g.others()[0]
			p := g.allocate(left)
			last := p.Backups[0]
			if !isCommitted {
				g.store.fail = func(m rdma.MachineID, old uint64, next *cluster.Configuration) error {
					if next.ID != before.ID+1 {
						return nil
					}
					g.world.Machine(m).Kill()
					return g.store.MemoryStore.CompareAndSwap(old, next)
				}
			}
			g.world.Machine(left).Kill()
			g.until("it is left out", func() bool { return g.cmConfig().ID == before.ID+1 })
			if isCommitted {
				g.settled(3)
			}
			c := g.cmConfig()
			if now, _ := c.Placement(p.Region); now.Primary != last || len(now.Filling) != 1 {
				t.Fatalf("%+v, want machine %d to be the last that has all of it", now, last)
			}
			for _, m := range c.Machines {
				g.world.Machine(m).Kill()
			}
			for _, m := range before.Machines {
				if m != last {
					g.boot(m, nil)
				}
			}
			c = g.settled(3)
			if now, _ := c.Placement(p.Region); now.IsAvailable() == isCommitted {
				t.Errorf("committed: %v, and then %+v", isCommitted, now)
			}
		})
	}
}

// The same, and the meeting's own configuration is not committed either: the last full
// replica goes as soon as it is stored.
func TestMeetingThatIsNotCommitted(t *testing.T) {
	simulate(t, sim.Options{Seed: 31}, 4, 2, func(g *group) {
		before := g.settled(4)
		left, p := g.apartFromCM()
		last := p.Backups[0]
		g.store.fail = func(m rdma.MachineID, old uint64, next *cluster.Configuration) error {
			switch next.ID {
			case before.ID + 1:
				g.world.Machine(m).Kill()
				return g.store.MemoryStore.CompareAndSwap(old, next)
			case before.ID + 2:
				if m == last {
					return cluster.ErrUnreachable
				}
				g.world.Machine(last).Kill()
			}
			return nil
		}
		g.world.Machine(left).Kill()
		g.until("it is left out", func() bool { return g.cmConfig().ID == before.ID+1 })
		c := g.cmConfig()
		for _, m := range c.Machines {
			g.world.Machine(m).Kill()
		}
		for _, m := range c.Machines {
			g.boot(m, nil)
		}
		g.until("the last one is out", func() bool { return g.cmConfig().ID >= before.ID+3 })
		g.boot(left, nil)
		if now, _ := g.settled(3).Placement(p.Region); !now.IsAvailable() {
			t.Errorf("machine %d has all of it and is back: %+v", left, now)
		}
	})
}

// apartFromCM makes a region of which the CM has no replica, and returns it and its primary.
func (g *group) apartFromCM() (rdma.MachineID, cluster.Placement) {
	g.Helper()
	for _, m := range g.others() {
		if p := g.allocate(m); p.Backups[0] != g.cm() {
			return m, p
		}
	}
	g.Fatal("the CM has a replica of all regions")
	return 0, cluster.Placement{}
}

// A CM makes a configuration that nobody has committed yet, and the store fails when it
// makes the next: that nobody has is not forgotten.
func TestUncommittedThoughTheStoreFails(t *testing.T) {
	for _, fails := range []bool{false, true} {
		simulate(t, sim.Options{Seed: 31}, 5, 2, func(g *group) {
			before := g.settled(5)
			left, p := g.apartFromCM()
			hasFailed := !fails
			g.store.fail = func(_ rdma.MachineID, _ uint64, next *cluster.Configuration) error {
				switch {
				case next.ID == before.ID+1:
					g.world.Machine(p.Backups[0]).Kill()
				case next.ID == before.ID+2 && !hasFailed:
					hasFailed = true
					return cluster.ErrUnreachable
				}
				return nil
			}
			g.world.Machine(left).Kill()
			g.until("both are out", func() bool { return len(g.cmConfig().Machines) == 3 })
			if now, _ := g.cmConfig().Placement(p.Region); len(now.Away) != 2 {
				t.Errorf("the store fails: %v: waits for %v, want both", fails, now.Away)
			}
		})
	}
}
