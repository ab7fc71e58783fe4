package simtest

import (
	"runtime"
	"testing"
	"time"
)

// Regions move, while machines die, links break, and the configuration is changed for other reasons.
func TestDrains(t *testing.T) {
	from, n := uint64(1), uint64(12)
	switch {
	case *seed != 0:
		from, n = *seed, 1
	case nightly:
		n = 1000
	}
	var total Result
	for s := from; s < from+n; s++ {
		o := Draw(s).Overlapping()
		o.Farm.Machines = max(o.Farm.Machines, 4)
		o.Farm.Replicas = min(o.Farm.Replicas, o.Farm.Machines-1)
		o.Domains, o.Tables = o.Farm.Machines, 0
		o.Overlap.Kinds = append(o.Overlap.Kinds, Drain, Drain, Drain)
		o.Overlap.Hold = max(o.Overlap.Hold, 20*time.Millisecond)
		r := Run(o)
		if r.Err != nil {
			t.Errorf("%v\n%v", o, r.Err)
		}
		total.Add(r)
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d machines were drained, %d replicas have moved", total.Faults[Drain], total.Moves)
	if *seed == 0 && total.Moves == 0 {
		t.Error("no replica has moved")
	}
}
