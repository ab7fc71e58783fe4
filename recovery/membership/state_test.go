package membership

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery"
)

func isRefused(f func()) (is bool) {
	defer func() { is = recover() != nil }()
	f()
	return
}

// Where invariants are checked no phase and no stage follows one that it must not.
func TestPhasesAndStagesFollow(t *testing.T) {
	for from := starting; from <= closed; from++ {
		for to := starting; to <= closed; to++ {
			m := new(Machine)
			m.mu.phase = from
			refused := isRefused(func() { m.enterLocked(to) })
			if want := invariant.Enabled && !slices.Contains(phasesBefore[to], from); refused != want {
				t.Errorf("from %v to %v: refused %v, want %v", from, to, refused, want)
			}
		}
	}
	for from := steady; from <= committing; from++ {
		for to := steady; to <= committing; to++ {
			m := new(Machine)
			m.mu.stage = from
			refused := isRefused(func() { m.proceed(to) })
			if want := invariant.Enabled && !slices.Contains(stagesBefore[to], from); refused != want {
				t.Errorf("from %v to %v: refused %v, want %v", from, to, refused, want)
			}
		}
	}
}

// Steps are taken in the stage that is named after them, and by members in the phase.
func TestStagesAndPhasesOfSteps(t *testing.T) {
	stages := map[recovery.Step]stage{
		recovery.StepProbed: probing, recovery.StepStored: updating, recovery.StepAcked: sending, recovery.StepLeasesOver: expiring,
	}
	phases := map[recovery.Step]phase{recovery.StepApplied: applied, recovery.StepCommitted: committed, recovery.StepAllActive: active}
	for seed := range uint64(5) {
		simulate(t, sim.Options{Seed: 90 + seed}, 4, 2, func(g *group) {
			seen := map[recovery.Step]int{}
			for id, n := range g.nodes {
				n.cfg.Step = func(s recovery.Step) {
					n.mu.Lock()
					defer n.mu.Unlock()
					seen[s]++
					if want, ok := stages[s]; ok && n.mu.stage != want {
						t.Errorf("machine %d: %v in stage %v, want %v", id, s, n.mu.stage, want)
					}
					if want, ok := phases[s]; ok && n.mu.phase != want {
						t.Errorf("machine %d: %v in phase %v, want %v", id, s, n.mu.phase, want)
					}
				}
			}
			g.world.Machine(g.others()[0]).Kill()
			g.settled(3)
			g.world.Machine(g.cm()).Kill()
			g.until("nobody changes the configuration", func() bool {
				c := g.cmConfig()
				return len(c.Machines) == 2 && !g.nodes[c.CM].Status().Recovering && g.nodes[c.CM].mu.stage == steady
			})
			for s := range stages {
				if seen[s] != 2 {
					t.Errorf("%v: %d times, of two failures", s, seen[s])
				}
			}
			for s := range phases {
				if seen[s] != 3+2 {
					t.Errorf("%v: %d times, at three machines and at two", s, seen[s])
				}
			}
		})
	}
}
