package simtest

import (
	"slices"
	"testing"
)

// Seeds that have found a fault stay. All of them found it before the simulator had tables, and the
// older ones before it had wedges or scarce resources.
func TestPinnedSeeds(t *testing.T) {
	for _, p := range []struct {
		what    string
		seed    uint64
		core    bool
		without []Fault
		recent  bool
	}{
		{what: "a replica begun anew counted as filled", seed: 108909281310, core: true},
		{what: "logs of an earlier life decided a transaction again", seed: 998493044768},
		{what: "an evicted machine exposed a commit at its own replica", seed: 400117, core: true},
		{what: "what was parked of a transaction older than the replica was left out", seed: 10, core: true},
		{what: "machines that died before they had applied a configuration did not meet", seed: 300073},
		{what: "a record that came too late counted after a restart", seed: 400075},
		{what: "half of what was reported committed was aborted, where a new replica did not know that it was truncated", seed: 601384, core: true},
		{what: "the same, seven machines", seed: 601790, core: true},
		{what: "a slot lent for a parked transaction was given back twice", seed: 9, without: []Fault{StoreCut, StoreFailures}},
		{what: "a machine had not noticed yet that it has room again", seed: 72018, recent: true},
		{what: "a member without room for a log kept the others waiting", seed: 20241, core: true, recent: true},
	} {
		t.Run(p.what, func(t *testing.T) {
			t.Parallel()
			o := Draw(p.seed).Overlapping()
			o.Overlap.Core, o.Tables = p.core, 0
			o.Small, o.Balance = 0, 0
			since := []Fault{Drain, KillAtMove, KillAtHandover, Resize, KillAtResize, ShrinkAtHandover}
			o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(f Fault) bool { return slices.Contains(since, f) })
			if !p.recent {
				o = o.plentiful()
				o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(f Fault) bool { return f == Wedge || slices.Contains(p.without, f) })
			}
			if r := Run(o); r.Err != nil {
				t.Errorf("%v\n%v", o, r.Err)
			}
		})
	}
}
