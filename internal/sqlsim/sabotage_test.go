//go:build sabotage

package sqlsim

import (
	"runtime"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/internal/simtest"
)

// The test of the test: one of a few runs is wrong without a step of a protocol that SQL depends
// on, and right with the step.
//
//	go test -tags gms_pure_go,sabotage -run TestSabotage -v ./internal/sqlsim
func TestSabotage(t *testing.T) {
	const seedsMax = 40
	for _, step := range []sabotage.Step{
		sabotage.Validation, sabotage.Answers, sabotage.RangeEnds, sabotage.Descriptor, sabotage.Mark, sabotage.Orphans,
	} {
		t.Run(step.String(), func(t *testing.T) {
			for s := uint64(1); s <= seedsMax; s++ {
				undo := sabotage.Skip(step)
				r := simtest.Run(draw(s))
				undo()
				runtime.GC() // unmaps the run's memory
				if r.Err != nil && simtest.Run(draw(s)).Err == nil {
					what, _, _ := strings.Cut(r.Err.Error(), "\n")
					t.Logf("caught by seed %d: %s", s, what)
					return
				}
			}
			t.Errorf("not caught with %d seeds", seedsMax)
		})
	}
}
