package farm

import (
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
)

// Machines of version 1 are restarted one by one with this program, and those with the next one,
// which joins and writes; transactions go on among all of them.
func TestMembersOfTwoVersions(t *testing.T) {
	first, next := protocol.Range{Min: 1, Max: 1}, protocol.Range{Min: 1, Max: protocol.Own.Max + 1}
	for seed := range uint64(3) {
		g := &members{T: t, world: sim.New(sim.Options{Seed: seed})}
		g.speaks = map[rdma.MachineID]protocol.Range{0: first, 1: first, 2: first}
		g.run(3, 3, func(g *members) {
			n := 0
			speaks := func(want protocol.Version) {
				t.Helper()
				for id := range rdma.MachineID(3) {
					g.add(id, 7)
					n++
				}
				if c, _ := g.store.Load(); c.Version() != want {
					t.Errorf("the instance speaks %d, want %d", c.Version(), want)
				}
				g.sees(7, byte(n))
			}
			restart := func(id rdma.MachineID, r protocol.Range) {
				g.kill(id)
				g.speaks[id] = r
				g.boot(id)
				g.until("the machine is back and everything is whole", func() bool { return g.up[id] != nil && g.whole() })
			}
			speaks(1)
			for id := range rdma.MachineID(3) {
				restart(id, protocol.Own)
				if id < 2 {
					speaks(1)
				}
			}
			speaks(protocol.Own.Max)
			g.speaks[3] = next
			g.boot(3)
			g.until("the machine of the next version is in", func() bool { return g.up[3] != nil && g.whole() })
			g.add(3, 7)
			n++
			speaks(protocol.Own.Max)
			for id := range rdma.MachineID(3) {
				restart(id, next)
				speaks(protocol.Own.Max + protocol.Version(id/2))
			}
		})
	}
}
