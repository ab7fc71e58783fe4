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

// If two goroutines enter an epoch at the same time, the slower one does not take the machine back
// to it after the faster one has gone on.
func TestEpochNeverGoesBack(t *testing.T) {
	m := stripedMachine(1)
	var hook EpochHook
	hook = m.OnEpoch(func() { // the faster one enters two epochs while the slower one runs the hooks
		hook.Cancel()
		m.enterEpoch(2)
		m.enterEpoch(3)
	})
	if current, done := m.enterEpoch(2); current != 3 || !done {
		t.Errorf("in epoch %d, done %v", current, done)
	}
	if current := m.epoch.Load(); current != 3 {
		t.Errorf("the machine is in epoch %d, after 3", current)
	}
}
