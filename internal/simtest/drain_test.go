package simtest

import (
	"runtime"
	"testing"
	"time"
)

// Regions move, while machines die, links break, and the configuration is changed for other reasons.
func TestDrains(t *testing.T) {
	drains(t, func(o *Options) { o.Overlap.Kinds = append(o.Overlap.Kinds, Drain, Drain, Drain) })
}

// Operators move replicas by hand, also of machines that are being drained, among the same faults.
func TestOrders(t *testing.T) {
	drains(t, func(o *Options) { o.Overlap.Kinds = append(o.Overlap.Kinds, Order, Order, Order, Order, Drain) })
}

// Machines die just when regions begin to move, and when replicas leave machines: the CM, the machine
// that a replica leaves, its target, any other. There is one machine more than replicas, so that
// the machine that a replica has left gets it back when another one dies, also while that failure is
// recovered from.
func TestKillsAtMoves(t *testing.T) {
	drains(t, func(o *Options) {
		o.Farm.Machines = 3 + int(o.Seed%2)
		o.Farm.Replicas = o.Farm.Machines - 1
		o.Domains = o.Farm.Machines
		o.Overlap.Kinds = []Fault{KillAtMove, KillAtMove, KillAtMove, KillAtMove, KillInRecovery}
		o.Overlap.Open, o.Overlap.Core, o.Overlap.Spare = 1+int(o.Seed/2%2), false, false
	})
}

// drains runs the simulator with machines that are drained, with options changed by with.
func drains(t *testing.T, with func(*Options)) {
	t.Helper()
	from, n := uint64(1), uint64(24)
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
		o.Overlap.Hold = max(o.Overlap.Hold, 20*time.Millisecond)
		with(&o)
		r := Run(o)
		if r.Err != nil {
			t.Errorf("%v\n%v", o, r.Err)
		}
		total.Add(r)
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d machines were drained, %d killed at moves, %d replicas were to move by hand, of which %d were granted, %d have moved", total.Faults[Drain], total.Faults[KillAtMove], total.Faults[Order], total.Orders, total.Moves)
	if *seed == 0 && total.Moves == 0 {
		t.Error("no replica has moved")
	}
	if *seed == 0 && total.Faults[Order] > 0 && total.Orders == 0 {
		t.Error("no move by hand has been granted")
	}
}
