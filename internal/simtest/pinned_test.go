package simtest

import "testing"

// Seeds that have found something stay.
func TestPinnedSeeds(t *testing.T) {
	for _, p := range []struct {
		what string
		seed uint64
		core bool
	}{
		{"a replica begun anew counted as filled", 108909281310, true},
		{"logs of an earlier life decided a transaction again", 998493044768, false},
		{"an evicted machine exposed a commit at its own replica", 400117, true},
	} {
		t.Run(p.what, func(t *testing.T) {
			t.Parallel()
			o := Draw(p.seed).Overlapping()
			o.Overlap.Core = p.core
			if r := Run(o); r.Err != nil {
				t.Errorf("%v\n%v", o, r.Err)
			}
		})
	}
}
