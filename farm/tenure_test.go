package farm

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/cluster"
)

// A machine may have lost the role of a primary, and have it again, without having applied the
// configuration in between. What it knows of reserved slots is as good as lost all the same, since the
// others count them as lost.
func TestTenureBeyondASkippedConfiguration(t *testing.T) {
	aFewMembers(t, 41, 3, 2, func(g *members) {
		m, c := g.up[0], g.configuration()
		i := slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.IsPrimary(0) })
		for i < 0 {
			(&counters{g: g}).begin(1)
			c = g.configuration()
			i = slices.IndexFunc(c.Regions, func(p cluster.Placement) bool { return p.IsPrimary(0) })
		}
		same, again, other := c.Succeed(), c.Succeed(), c.Succeed()
		again.ID++
		again.Regions[i].LastPrimaryChange = again.ID
		other.Regions[i].Primary, other.Regions[i].LastPrimaryChange = other.Regions[i].Backups[0], other.ID
		for _, x := range []struct {
			what           string
			c              *cluster.Configuration
			isOurs, goesOn bool
		}{{"the same primary", same, true, true}, {"the primary again", again, true, false}, {"another primary", other, false, false}} {
			isOurs, goesOn := m.keeps(x.c, x.c.Regions[i].Region)
			if isOurs != x.isOurs || goesOn != x.goesOn {
				t.Errorf("%s: %v, %v", x.what, isOurs, goesOn)
			}
		}
		if isOurs, goesOn := m.keeps(c, c.NextRegion); !isOurs || !goesOn {
			t.Error("a region that is being made is not kept")
		}
	})
}
