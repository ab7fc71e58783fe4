package farm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
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

// While a member does not know moves nothing is drained and nothing moves, and the configuration has
// no format that it does not know. As soon as the last one knows them a machine can be drained, and
// from then on no machine that does not know them is let in.
func TestDrainAroundTheVersionOfMoves(t *testing.T) {
	before, after := protocol.Range{Min: 1, Max: protocol.Moves - 1}, protocol.Range{Min: 1, Max: protocol.Moves}
	g := &members{T: t, world: sim.New(sim.Options{Seed: 4})}
	g.speaks = map[rdma.MachineID]protocol.Range{0: before, 1: before, 2: before, 3: before}
	g.run(4, 2, func(g *members) {
		drain := func(by rdma.MachineID) (err error) {
			err = membership.ErrRestart
			for begin := g.world.Now(); err != nil && !errors.Is(err, cluster.ErrCannotDrain) && g.world.Now() < begin+time.Second; {
				g.at(by, func(m *Member) { err = m.Membership().Drain(context.Background(), 1, false) })
			}
			return err
		}
		for id := range rdma.MachineID(4) {
			for by := range rdma.MachineID(4) {
				if err := drain(by); !errors.Is(err, cluster.ErrCannotDrain) {
					t.Errorf("machine %d asks, %d machines know moves: %v", by, id, err)
				}
			}
			if c, _ := g.store.Load(); len(c.Draining) > 0 || !strings.Contains(string(c.Encode()), `"Format":4`) {
				t.Errorf("%d machines know moves: %s", id, c.Encode())
			}
			g.kill(id)
			g.speaks[id] = after
			g.boot(id)
			g.until("the machine is back and everything is whole", func() bool { return g.up[id] != nil && g.whole() })
		}
		if err := drain(3); err != nil {
			t.Fatal(err)
		}
		g.until("machine 1 is drained", g.atRest)
		if c, _ := g.store.Load(); !c.IsDraining(1) || !strings.Contains(string(c.Encode()), `"Format":5`) {
			t.Errorf("%s", c.Encode())
		}
		g.kill(1)
		g.speaks[1] = before
		g.isOld = true
		g.boot(1)
		g.world.Outside().Sleep(time.Second)
		if c, _ := g.store.Load(); !errors.Is(g.ended[1], protocol.ErrRange) || len(c.Machines) != 3 {
			t.Errorf("a machine that does not know moves is a member: %v", c.Machines)
		}
	})
}

// While a member does not know that the number of replicas can change, it does not, drains go on, and the
// configuration has the format of before. As soon as the last one knows it, regions grow, and from then on no machine
// that does not know it is let in.
func TestResizeAroundItsVersion(t *testing.T) {
	before := protocol.Range{Min: 1, Max: protocol.Resizes - 1}
	g := &members{T: t, world: sim.New(sim.Options{Seed: 5})}
	g.speaks = map[rdma.MachineID]protocol.Range{0: before, 1: before, 2: before, 3: before}
	g.run(4, 2, func(g *members) {
		g.add(0, 7)
		for id := range rdma.MachineID(4) {
			for by := range rdma.MachineID(4) {
				g.at(by, func(m *Member) {
					if err := m.Membership().Resize(context.Background(), 3); !errors.Is(err, cluster.ErrCannotResize) || !strings.Contains(err.Error(), "version 4 is needed") {
						t.Errorf("machine %d asks, %d machines know resizes: %v", by, id, err)
					}
				})
			}
			other := (id + 1) % 4
			g.drain(id, other, false)
			g.until("the machine is drained", g.atRest)
			g.drain(id, other, true)
			g.until("the machine has its share", g.atRest)
			if c, _ := g.store.Load(); c.Replicas != 2 || !strings.Contains(string(c.Encode()), `"Format":5`) {
				t.Errorf("%d machines know resizes: %s", id, c.Encode())
			}
			g.kill(id)
			delete(g.speaks, id)
			g.boot(id)
			g.until("the machine is back and everything is whole", func() bool { return g.up[id] != nil && g.whole() })
		}
		g.resize(3, 3)
		g.until("all regions have 3 replicas", func() bool { return g.isResized(3) })
		if c, _ := g.store.Load(); !strings.Contains(string(c.Encode()), `"Format":6`) {
			t.Errorf("%s", c.Encode())
		}
		g.sees(7, 1)
		g.kill(1)
		g.speaks[1] = before
		g.isOld = true
		g.boot(1)
		g.world.Outside().Sleep(time.Second)
		if c, _ := g.store.Load(); !errors.Is(g.ended[1], protocol.ErrRange) || len(c.Machines) != 3 {
			t.Errorf("a machine that does not know resizes is a member: %v", c.Machines)
		}
	})
}
