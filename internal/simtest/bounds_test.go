package simtest

import "testing"

// Only living clients that are not told an outcome count as too many: a power cut ends the
// transactions of all.
func TestUnknownOutcomes(t *testing.T) {
	r := run{orphans: 55, result: Result{Commits: 1000, Aborts: 100, Unknown: 60}}
	if err := r.checkUnknown(); err != nil {
		t.Error(err)
	}
	if r.orphans = 0; r.checkUnknown() == nil {
		t.Error("60 of 1160 are not too many")
	}
}
