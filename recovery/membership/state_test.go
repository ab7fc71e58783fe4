package membership

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
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
