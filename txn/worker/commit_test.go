package worker

import (
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/txn/commitstate"
)

func TestIllegalTransition(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("needs the tag invariants")
	}
	defer func() {
		if recover() == nil {
			t.Error("COMMIT-PRIMARY before COMMIT-BACKUP is not noticed")
		}
	}()
	c := &Commit{state: commitstate.Validating}
	c.EnterLocked(commitstate.CommittingPrimaries)
}
