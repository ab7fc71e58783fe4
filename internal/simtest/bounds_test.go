package simtest

import "testing"

// Clients that are not told how their transactions ended are too many only if they live:
// a power cut ends the transactions of all.
func TestUnknownOutcomes(t *testing.T) {
	r := run{orphans: 55, result: Result{Commits: 1000, Aborts: 100, Unknown: 60}}
	if err := r.checkUnknown(); err != nil {
		t.Error(err)
	}
	if r.orphans = 0; r.checkUnknown() == nil {
		t.Error("60 of 1160 are not too many")
	}
}
