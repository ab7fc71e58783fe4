package worker

import "testing"

// A machine that is several epochs behind, because it was busy when it joined, is
// not left behind: it follows as soon as nothing is open.
func TestFollowsFromFarBehind(t *testing.T) {
	m := stripedMachine(1)
	cleared := 0
	m.OnEpoch(func() { cleared++ })
	opened := m.Start()
	if current, _ := m.enterEpoch(7); current != 1 || cleared != 0 {
		t.Errorf("in epoch %d, caches cleared %d times, with an operation open", current, cleared)
	}
	opened.End()
	if current, done := m.enterEpoch(7); current != 7 || !done || cleared != 1 {
		t.Errorf("in epoch %d, done %v, caches cleared %d times", current, done, cleared)
	}
	m.Start() // in 7: 8 may begin, 9 has to wait
	if current, done := m.enterEpoch(8); current != 8 || done {
		t.Errorf("in epoch %d, done %v", current, done)
	}
	if current, _ := m.enterEpoch(9); current != 8 {
		t.Errorf("in epoch %d", current)
	}
}
