package membership

import (
	"context"
	"testing"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/region"
)

// A replica that has been started again keeps a region from being made for now:
// whoever asked the CM for it hears that it may try again.
func TestAllocationMeetsAnotherLife(t *testing.T) {
	simulate(t, sim.Options{Seed: 36}, 4, 2, func(g *group) {
		who := g.others()[0]
		near := g.allocate(who)
		for near.Has(g.cm()) {
			near = g.allocate(who)
		}
		backup := near.Backups[0]
		g.world.Machine(backup).Kill()
		g.boot(backup, nil)
		g.at(who, func(n *node) {
			if _, err := n.Allocate(context.Background(), who, near.Region); err != nil && !IsPassing(err) {
				t.Errorf("not to be tried again: %v", err)
			}
		})
		g.settled(4)
	})
}

// A machine that was evicted and does not know it yet is told by the CM that it is no member. It
// goes on trying until it learns that its life is over. The error is then ErrEvicted, after which
// another life begins, and not an error of the operation.
func TestEvictedMachineAsks(t *testing.T) {
	simulate(t, sim.Options{Seed: 37}, 4, 2, func(g *group) {
		g.allocate(g.cm())
		c := g.settled(4)
		n := g.nodes[g.others()[0]]
		next, _ := c.Without(g.others()[:1], c.CM)
		g.nodes[c.CM].mu.current = next
		g.at(n.self.Machine, func(n *node) {
			if _, err := n.Root(context.Background(), region.Ptr{}); !IsPassing(err) {
				t.Errorf("not to be tried again: %v", err)
			}
		})
		g.nodes[c.CM].mu.current = c
	})
}
