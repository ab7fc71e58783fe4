package farm

import (
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
)

// A new backup does not count as filled before the transactions of earlier
// configurations are settled there, however long that takes: what they wrote may
// not have been copied.
func TestFilledAfterSettled(t *testing.T) {
	aFewMembers(t, 3, 4, 3, func(g *members) {
		g.add(0, 7)
		c, _ := g.store.Load()
		dead := c.Regions[0].Backups[0]
		held, filling := rdma.MachineID(0), false
		for _, x := range c.Machines {
			if !c.Regions[0].Has(x) {
				held = x // will be the new backup
			}
		}
		g.recovering = func(id rdma.MachineID, s recovery.Step) {
			if id != held || s != recovery.StepSettled {
				return
			}
			g.world.Machine(id).Process().Sleep(time.Second)
			c, _ := g.store.Load()
			filling = slices.Contains(c.Regions[0].Filling, held)
		}
		g.kill(dead)
		g.until("the region is whole", func() bool { return g.whole() })
		if !filling {
			t.Error("filled before it was settled")
		}
	})
}
