package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
)

// deaths runs f in a world of five machines; suspected tells when the first of them
// was suspected that f makes end, or 0.
func deaths(t *testing.T, seed uint64, replicas int, f func(g *group, suspected *time.Duration)) {
	t.Helper()
	simulate(t, sim.Options{Seed: seed}, 5, replicas, func(g *group) {
		var suspected time.Duration
		for _, n := range g.nodes {
			n.cfg.Events.Suspected = func(rdma.MachineID) {
				if suspected == 0 {
					suspected = g.world.Now()
				}
			}
		}
		f(g, &suspected)
	})
}

// A machine that has died is suspected long before its lease runs out, which is
// waited for where nobody knows of deaths, and of a machine that stops.
func TestDeathIsSuspicion(t *testing.T) {
	for _, c := range []struct {
		name   string
		seed   uint64 // in odd worlds deaths are known
		end    func(g *group, m rdma.MachineID)
		atOnce bool
	}{
		{"dies", 1, func(g *group, m rdma.MachineID) { g.world.Machine(m).Kill() }, true},
		{"dies, unknown to anybody", 2, func(g *group, m rdma.MachineID) { g.world.Machine(m).Kill() }, false},
		{"stops", 1, func(g *group, m rdma.MachineID) { g.nodes[m].stop() }, false},
	} {
		for _, isCM := range []bool{false, true} {
			deaths(t, c.seed, 3, func(g *group, suspected *time.Duration) {
				victim := g.others()[1]
				if isCM {
					victim = g.cm()
				}
				at := g.world.Now()
				c.end(g, victim)
				g.settled(4)
				took := *suspected - at
				if *suspected == 0 || c.atOnce != (took < leaseLength/4) || took > 2*leaseLength {
					t.Errorf("%s, CM %v: suspected after %v", c.name, isCM, took)
				}
			})
		}
	}
}

// stop ends a machine's part and takes it off the network, as SIGTERM does.
func (n *node) stop() {
	n.process.Do(func() {
		n.cfg.Endpoint.Close()
		_ = n.keeper.Close()
		n.Close()
		_ = n.cfg.NIC.Close()
	})
	n.process.Machine().Kill()
}

// Nobody is evicted if all are killed, one soon after the other: those who die last
// do not suspect the first.
func TestAllDieTogether(t *testing.T) {
	for seed := uint64(1); seed < 20; seed += 2 {
		deaths(t, seed, 3, func(g *group, suspected *time.Duration) {
			before := g.settled(5)
			for _, m := range before.Machines {
				g.world.Machine(m).Kill()
				g.world.Outside().Sleep(leaseLength / deathPause / 5)
			}
			g.world.Outside().Sleep(5 * leaseLength)
			if c, _ := g.store.MemoryStore.Load(); c.ID != before.ID || *suspected != 0 {
				t.Errorf("seed %d: configuration %d with machines %v", seed, c.ID, c.Machines)
			}
		})
	}
}

// A machine without which a region is unavailable is suspected when its lease has run out.
func TestTheLastReplicaIsWaitedFor(t *testing.T) {
	deaths(t, 1, 1, func(g *group, suspected *time.Duration) {
		victim := g.others()[0]
		g.allocate(victim)
		at := g.world.Now()
		g.world.Machine(victim).Kill()
		g.settled(4)
		if took := *suspected - at; took < leaseLength/2 {
			t.Errorf("suspected after %v", took)
		}
	})
}

// A report of the death of a machine that is alive, or of one that is no member, has no
// consequences.
func TestOnlyTheDeadAreMourned(t *testing.T) {
	deaths(t, 1, 3, func(g *group, suspected *time.Duration) {
		before := g.settled(5)
		for _, m := range append(slices.Clone(before.Machines), 9) {
			for id := range g.nodes {
				g.at(id, func(n *node) { n.onDeath(m) })
			}
		}
		victim := g.others()[0]
		g.world.Outside().Sleep(5 * leaseLength)
		if c := g.settled(5); c.ID != before.ID || *suspected != 0 {
			t.Errorf("configuration %d with machines %v", c.ID, c.Machines)
		}
		// One that is back before it is suspected is not: it meets the others, and
		// they find that it is another life.
		g.world.Machine(victim).Kill()
		g.boot(victim, nil)
		g.settled(5)
	})
}
