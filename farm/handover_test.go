package farm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// Three machines have all regions. Each time that one has failed and is back, primaries are handed over to
// it by those that stay as backups, while they commit transactions, make slabs and give them back.
// Nothing is copied for that, nothing is lost, and all replicas are equal; also when the next to fail is one
// that is a primary once more.
func TestHandovers(t *testing.T) {
	for seed := range uint64(2) {
		aFewMembers(t, 20+seed, 3, 3, func(g *members) {
			c := &counters{g: g}
			c.begin(60)
			c.count(1)
			c.churn(1)
			for _, id := range []rdma.MachineID{0, 2, 0} {
				g.kill(id)
				g.until(fmt.Sprintf("machine %d is gone", id), func() bool { return len(g.configuration().Machines) == 2 && g.filled() })
				before := g.configuration()
				if len(before.Regions) < 3 || before.PrimaryOf(id) > 0 {
					t.Fatalf("%+v", before.Regions)
				}
				g.boot(id)
				g.until(fmt.Sprintf("machine %d has its share of the primaries", id), func() bool { return g.haveAll(3) && evenPrimaries(g.configuration()) })
				for _, p := range g.configuration().Regions {
					if was, ok := before.Placement(p.Region); ok && len(was.Backups) == 1 && p.LastReplicaChange > before.ID+1 {
						t.Errorf("region %d has other replicas since configuration %d, was %+v, is %+v", p.Region, p.LastReplicaChange, was, p)
					}
				}
			}
			c.finish()
		})
	}
}

// haveAll reports whether the instance has n machines, and everything is whole.
func (g *members) haveAll(n int) bool { return len(g.configuration().Machines) == n && g.whole() }

// evenPrimaries reports whether no two machines differ by more than one primary, or a tenth.
func evenPrimaries(c *cluster.Configuration) bool {
	var n []int
	for _, m := range c.Machines {
		n = append(n, c.PrimaryOf(m))
	}
	low, high := slices.Min(n), slices.Max(n)
	return high-low <= max(1, high/10)
}

// While a primary is handed over, operations that use it wait for a few milliseconds, not for a lease: no
// machine is missing.
func TestHandoverIsShort(t *testing.T) {
	aFewMembers(t, 31, 3, 3, func(g *members) {
		c := &counters{g: g}
		c.begin(60)
		g.kill(0)
		g.until("machine 0 is gone", func() bool { return len(g.configuration().Machines) == 2 && g.filled() })
		g.boot(0)
		g.until("machine 0 is back", func() bool { return g.haveAll(3) })
		last, longest, before := g.world.Now(), time.Duration(0), g.configuration().ID
		stops, going := false, true
		m, p := g.up[1], g.world.Machine(1).Process()
		p.Go(func() {
			defer func() { going = false }()
			for k := 0; !stops; k = (k + 1) % len(c.ptrs) {
				b := make([]byte, c.ptrs[k].Capacity())
				if _, err := m.Transactions().Read(c.ptrs[k], b); err != nil {
					t.Error(err)
				}
				longest, last = max(longest, g.world.Now()-last), g.world.Now()
				p.Sleep(50 * time.Microsecond)
			}
		})
		g.until("primaries are handed over", func() bool { return evenPrimaries(g.configuration()) && g.haveAll(3) })
		stops = true
		g.until("nobody reads any more", func() bool { return !going })
		if after := g.configuration().ID; after != before+1 || longest > 5*time.Millisecond {
			t.Errorf("%d configurations, and nobody reads for %v", after-before, longest)
		}
		t.Logf("nobody has read for %v", longest)
	})
}
