package farm

import (
	"testing"

	"github.com/farmsql/farmsql/internal/sim"
)

// A machine that hangs, but whose keeper goes on, is evicted within two leases and a
// reconfiguration, whether it is the CM or not; then the others can commit what it has held up.
// When it goes on, it finds out. A machine that hangs for only one lease stays.
func TestHungMember(t *testing.T) {
	for _, isCM := range []bool{false, true} {
		for seed := range uint64(4) {
			g := &members{T: t, world: sim.New(sim.Options{Seed: 50 + seed}), aside: true}
			g.run(3, 3, func(g *members) {
				c := g.configuration()
				victim := c.CM
				if !isCM {
					victim = (c.CM + 1) % 3
				}
				other := (victim + 1) % 3
				object := g.object(victim)
				g.world.Machine(victim).Hang(simulatedLease)
				g.world.Outside().Sleep(5 * simulatedLease)
				if now := g.configuration(); now.ID != g.up[other].Membership().Configuration().ID || len(now.Machines) != 3 {
					t.Errorf("seed %d, CM %v: it hung for a lease: %v", seed, isCM, now.Machines)
				}
				g.world.Machine(victim).Hang(100 * simulatedLease)
				begin := g.world.Now()
				done := false
				m := g.up[other]
				g.world.Machine(other).Process().Go(func() {
					if err := write(m, object); err != nil {
						t.Errorf("seed %d, CM %v: %v", seed, isCM, err)
					}
					done = true
				})
				g.until("it is given up", func() bool { _, in := g.configuration().Member(victim); return !in })
				if took := g.world.Now() - begin; took > 3*simulatedLease {
					t.Errorf("seed %d, CM %v: given up after %v", seed, isCM, took)
				}
				g.until("the others go on", func() bool { return done })
				if took := g.world.Now() - begin; took > 5*simulatedLease {
					t.Errorf("seed %d, CM %v: a write took %v", seed, isCM, took)
				}
				g.until("it finds out", func() bool { return g.ended[victim] != nil })
			})
		}
	}
}
