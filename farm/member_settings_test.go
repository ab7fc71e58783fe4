package farm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
)

// Two machines with different settings begin an instance at the same time, both before the other has
// stored a configuration. The one that comes second ends that life, and says in what the two differ;
// its next life has the settings of the first.
func TestFoundersOfOtherSettings(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"workers":     func(c *Config) { c.Workers = 5 },
		"region size": func(c *Config) { c.RegionBytes *= 2 },
		"log size":    func(c *Config) { c.LogBytes /= 2 },
	} {
		t.Run(name, func(t *testing.T) {
			g := &members{T: t, world: sim.New(sim.Options{Seed: 51})}
			g.storing = func(c *cluster.Configuration) { // until both have found an empty store
				if c.Revision == 1 {
					g.world.Machine(c.CM).Process().Sleep(20 * time.Millisecond)
				}
			}
			g.begin(2)
			err := g.world.Run(func() {
				g.restarts = true
				g.boot(0)
				change(&g.settings)
				g.boot(1)
				var second rdma.MachineID
				g.until("one ends its life", func() bool {
					for second = range rdma.MachineID(2) {
						if g.ended[second] != nil {
							return true
						}
					}
					return false
				})
				if err := g.ended[second]; !errors.Is(err, membership.ErrRestart) || !errors.Is(err, cluster.ErrSettings) || !strings.Contains(err.Error(), name) {
					t.Errorf("it ends with %v", err)
				}
				g.kill(second)
				g.boot(second)
				g.until("both are up", func() bool { return len(g.up) == 2 && g.whole() })
				g.add(0, 7)
				g.add(1, 7)
				g.sees(7, 2)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
