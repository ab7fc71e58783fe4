package commitstate

import "testing"

// reachableFrom returns the states that a commit can come to within one attempt.
func reachableFrom(s State) (all stateSet) {
	next := transitions[s] &^ statesOf(Planned)
	for to := range states {
		if next.has(to) {
			all |= statesOf(to) | reachableFrom(to) // there are no circles but by Planned
		}
	}
	return all
}

func TestCommitTransitions(t *testing.T) {
	for s := range states {
		if s != Planned && !reachableFrom(Planned).has(s) {
			t.Errorf("no commit is ever %v", s)
		}
		if transitions[s] == 0 {
			t.Errorf("no attempt ends that is %v", s)
		}
		if (s == InDoubt || transitions[s].has(Planned)) && reachableFrom(s) != 0 && s != Planned {
			t.Errorf("an attempt that is %v is over, and goes on", s)
		}
	}
	if !reachableFrom(Locking).has(Aborted) || !reachableFrom(Validating).has(Aborted) {
		t.Error("a coordinator cannot abort while there are only LOCK records")
	}
	for s := CommittingBackups; s <= Truncating; s++ {
		if reachableFrom(s).has(Aborted) {
			t.Errorf("a coordinator aborts a commit that is %v, which recovery may commit", s)
		}
	}
	for s := Locking; s <= Stranded; s++ {
		if isUnderWay := s != Truncating && s != Aborted; transitions[s].has(Caught) != isUnderWay {
			t.Errorf("a reconfiguration catches a commit that is %v: %v", s, !isUnderWay)
		}
	}
}
