package txn

import (
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
)

// reachableFrom returns the states that a commit can come to within one attempt.
func reachableFrom(s commitState) (all commitStateSet) {
	next := commitTransitions[s] &^ commitStatesOf(statePlanned)
	for to := range commitStates {
		if next.has(to) {
			all |= commitStatesOf(to) | reachableFrom(to) // there are no circles but by statePlanned
		}
	}
	return all
}

func TestCommitTransitions(t *testing.T) {
	for s := range commitStates {
		if s != statePlanned && !reachableFrom(statePlanned).has(s) {
			t.Errorf("no commit is ever %v", s)
		}
		if commitTransitions[s] == 0 {
			t.Errorf("no attempt ends that is %v", s)
		}
		if (s == stateInDoubt || commitTransitions[s].has(statePlanned)) && reachableFrom(s) != 0 && s != statePlanned {
			t.Errorf("an attempt that is %v is over, and goes on", s)
		}
	}
	if !reachableFrom(stateLocking).has(stateAborted) || !reachableFrom(stateValidating).has(stateAborted) {
		t.Error("a coordinator cannot abort while there are only LOCK records")
	}
	for s := stateCommittingBackups; s <= stateTruncating; s++ {
		if reachableFrom(s).has(stateAborted) {
			t.Errorf("a coordinator aborts a commit that is %v, which recovery may commit", s)
		}
	}
	for s := stateLocking; s <= stateStranded; s++ {
		if isUnderWay := s != stateTruncating && s != stateAborted; commitTransitions[s].has(stateCaught) != isUnderWay {
			t.Errorf("a reconfiguration catches a commit that is %v: %v", s, !isUnderWay)
		}
	}
}

func TestIllegalTransition(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("needs the tag invariants")
	}
	defer func() {
		if recover() == nil {
			t.Error("COMMIT-PRIMARY before COMMIT-BACKUP is not noticed")
		}
	}()
	c := &commit{state: stateValidating}
	c.enterLocked(stateCommittingPrimaries)
}
