package simtest

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// Machines that are killed one after the other, each as soon as the one before
// serves again and before it has its replicas back, lose nothing: their memory is
// kept, and nobody may do without the one that has the last full replica.
func TestRollingKills(t *testing.T) {
	for _, c := range []struct{ machines, replicas int }{{3, 2}, {3, 3}, {5, 2}, {5, 3}} {
		t.Run(fmt.Sprintf("%d machines, %d replicas", c.machines, c.replicas), func(t *testing.T) {
			for seed := uint64(1); seed <= 4; seed++ {
				o := Draw(seed)
				o.Farm.Machines, o.Farm.Replicas, o.Domains, o.Clients = c.machines, c.replicas, c.machines, 1
				o.Duration = 50 * time.Millisecond
				o.Overlap = &Overlap{Kinds: []Fault{Rolling}, Open: 1, Max: 2, Hold: time.Millisecond}
				r := Run(o)
				if r.Err != nil || r.Faults[Rolling] < 2 {
					t.Errorf("seed %d: %d kills: %v", seed, r.Faults[Rolling], r.Err)
				}
				runtime.GC() // unmaps the run's memory
			}
		})
	}
}

// The same seed gives the same run with faults that overlap, too, whatever the
// processor's number is and whatever runs beside.
func TestOverlappingSeedDecides(t *testing.T) {
	for s := uint64(1); s <= 4; s++ {
		first := Run(Draw(s).Overlapping())
		before := runtime.GOMAXPROCS(1)
		beside := make(chan Result)
		go func() { beside <- Run(Draw(s).Overlapping()) }()
		second := Run(Draw(s).Overlapping())
		runtime.GOMAXPROCS(before)
		if third := <-beside; first.Line() != second.Line() || first.Line() != third.Line() {
			t.Errorf("three runs are:\n%s\n%s\n%s", first.Line(), second.Line(), third.Line())
		}
		runtime.GC() // unmaps the runs' memory
	}
}
