package membership

import (
	"testing"

	"github.com/farmsql/farmsql/internal/sim"
)

// A machine that is about to stop suspects nobody, also of those that have stopped before.
func TestWhoLeavesSuspectsNobody(t *testing.T) {
	simulate(t, sim.Options{Seed: 84}, 3, 3, func(g *group) {
		c := g.settled(3)
		other := (c.CM + 1) % 3
		g.at(c.CM, func(n *node) {
			n.Leave()
			n.Suspect(other)
			if s := n.Status(); len(s.Suspects) > 0 || s.Changing {
				t.Errorf("suspects %v", s.Suspects)
			}
		})
	})
}
