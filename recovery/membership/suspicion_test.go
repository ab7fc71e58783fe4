package membership

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
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

// Machines that are about to stop make no configuration, whatever they meet: a connection that
// ends, a member that reports it to the CM, a wish for another configuration. Those that have
// stopped already are members still, and come back as such.
func TestWhoLeavesChangesNothing(t *testing.T) {
	for name, restartTogether := range map[string]func(n *node, c *cluster.Configuration, other rdma.MachineID){
		"disconnected": func(n *node, _ *cluster.Configuration, other rdma.MachineID) { n.Disconnected(other) },
		"renewed":      func(n *node, _ *cluster.Configuration, _ rdma.MachineID) { n.Renew() },
		"told": func(n *node, c *cluster.Configuration, other rdma.MachineID) {
			_, _ = n.onUnreachable(recovery.PeerIn(c, other), encodeID(c.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, sim.Options{Seed: 85}, 3, 3, func(g *group) {
				c := g.settled(3)
				for _, x := range c.Machines {
					g.at(x, func(n *node) { n.Leave() })
				}
				for _, x := range c.Machines {
					g.at(x, func(n *node) { restartTogether(n, c, (x+1)%3) })
				}
				g.world.Outside().Sleep(20 * leaseLength)
				g.at(c.CM, func(n *node) {
					if now := n.Configuration(); now.ID != c.ID {
						t.Errorf("configuration %d, was %d", now.ID, c.ID)
					}
				})
			})
		})
	}
}

// A CM that is about to stop while it makes a configuration does not store it.
func TestWhoLeavesStoresNothing(t *testing.T) {
	simulate(t, sim.Options{Seed: 86}, 3, 3, func(g *group) {
		c := g.settled(3)
		cm, isProbed := g.nodes[c.CM], false
		cm.cfg.Step = func(s recovery.Step) {
			if s == recovery.StepProbed {
				isProbed = true
				for _, n := range g.nodes {
					n.Leave()
				}
			}
		}
		g.at(c.CM, func(n *node) { n.Suspect((c.CM + 1) % 3) })
		g.until("the CM has probed", func() bool { return isProbed })
		g.world.Outside().Sleep(20 * leaseLength)
		if now := g.cmConfig(); now.ID != c.ID {
			t.Errorf("configuration %d, was %d", now.ID, c.ID)
		}
	})
}
