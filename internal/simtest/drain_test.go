package simtest

import (
	"runtime"
	"testing"
	"time"
)

// Regions move, while machines die, links break, and the configuration is changed for other reasons.
func TestDrains(t *testing.T) {
	haveMoved(t, drains(t, 24, func(o *Options) { o.Overlap.Kinds = append(o.Overlap.Kinds, Drain, Drain, Drain) }))
}

// Operators move replicas by hand, also of machines that are being drained, among the same faults.
func TestOrders(t *testing.T) {
	total := drains(t, 24, func(o *Options) { o.Overlap.Kinds = append(o.Overlap.Kinds, Order, Order, Order, Order, Drain) })
	haveMoved(t, total)
	if *seed == 0 && total.Orders == 0 {
		t.Error("no move by hand has been granted")
	}
}

// Machines die just when regions begin to move, and when replicas leave machines: the CM, the machine
// that a replica leaves, its target, any other. There is one machine more than replicas, so that
// the machine that a replica has left gets it back when another one dies, also while that failure is
// recovered from.
func TestKillsAtMoves(t *testing.T) {
	haveMoved(t, drains(t, 24, func(o *Options) {
		o.Farm.Machines = 3 + int(o.Seed%2)
		o.Farm.Replicas = o.Farm.Machines - 1
		o.Domains = o.Farm.Machines
		o.Overlap.Kinds = []Fault{KillAtMove, KillAtMove, KillAtMove, KillAtMove, KillInRecovery}
		o.Overlap.Open, o.Overlap.Core, o.Overlap.Spare = 1+int(o.Seed/2%2), false, false
	}))
}

// Primaries are handed over to machines that have come back, while others die, also just then: the new
// primary, the former one, the CM; sometimes a second one while that failure is recovered from, so that
// the former primary gets its role back at once. All machines have all regions, so that nothing can move.
func TestHandovers(t *testing.T) {
	total := drains(t, 12, handsOver)
	if *seed == 0 && (total.Handovers == 0 || total.Faults[KillAtHandover] == 0 || total.Moves > 0) {
		t.Errorf("%d regions were handed over, %d machines killed at that, and %d replicas moved: want some, some, and none", total.Handovers, total.Faults[KillAtHandover], total.Moves)
	}
}

// handsOver makes options with which primaries are handed over.
func handsOver(o *Options) {
	o.Farm.Machines = 3 + int(o.Seed%2)
	o.Farm.Replicas = o.Farm.Machines
	o.Domains = o.Farm.Machines
	o.Balance = leaseTime / 2
	o.Duration, o.Overlap.Hold = 300*time.Millisecond, 10*time.Millisecond
	o.Overlap.Kinds = []Fault{KillAtHandover}
	if o.Seed%3 == 0 { // something else besides
		o.Overlap.Kinds = append(o.Overlap.Kinds, KillInRecovery, PowerCut, Pause)
	}
	o.Overlap.Open, o.Overlap.Core, o.Overlap.Spare, o.Overlap.Max = 1+int(o.Seed/2%2), false, false, 0
	o.Overlap.Early, o.Overlap.Lost = false, 0
	o.Clients, o.Objects = 3, 8+o.Farm.Machines // many transactions are caught, and few objects written again soon
}

// The number of replicas changes, among the same faults, and with machines that are drained and replicas that are moved
// by hand.
func TestResizes(t *testing.T) {
	haveResized(t, drains(t, 24, func(o *Options) {
		o.Overlap.Kinds = append(o.Overlap.Kinds, Resize, Resize, Resize, KillAtResize, KillAtResize, Drain, Order)
	}))
}

// Machines die just when regions get or lose replicas: the CM, the primary, a backup, one that has just lost the
// region, any other, and one more while that is recovered from.
func TestKillsAtResizes(t *testing.T) {
	haveResized(t, drains(t, 24, func(o *Options) {
		o.Farm.Machines = 3 + int(o.Seed%3)
		o.Farm.Replicas = 1 + int(o.Seed/3%3)
		o.Domains = o.Farm.Machines
		o.Overlap.Kinds = []Fault{KillAtResize, KillAtResize, KillAtResize, KillInRecovery}
		o.Overlap.Open, o.Overlap.Core, o.Overlap.Spare = 1+int(o.Seed/2%2), false, false
	}))
}

// Primaries are handed over, and just then regions lose replicas, also those that the former primaries have, and get
// others; machines die, all of them now and then. Besides, machines are drained and replicas moved by hand, some of them
// have no room, or cannot be reached for a while.
func TestHandoversAmongResizes(t *testing.T) {
	total := drains(t, 12, handsOverAndResizes)
	haveMoved(t, total)
	if *seed == 0 && (total.Handovers == 0 || total.Regrown == 0 || total.Faults[ShrinkAtHandover] == 0) {
		t.Errorf("%d regions were handed over, regions have got or lost replicas %d times, %d times just after a handover: want some", total.Handovers, total.Regrown, total.Faults[ShrinkAtHandover])
	}
}

// handsOverAndResizes makes options with which primaries are handed over, and the number of replicas changes.
func handsOverAndResizes(o *Options) {
	o.Farm.Machines = 3 + int(o.Seed%3)
	o.Farm.Replicas = 1 + int(o.Seed/3%3)
	o.Domains = o.Farm.Machines
	o.Balance = leaseTime / 2 << (o.Seed % 2 * 2)
	o.Duration, o.Overlap.Hold = 400*time.Millisecond, 10*time.Millisecond
	o.Overlap.Kinds = []Fault{ShrinkAtHandover, ShrinkAtHandover, ShrinkAtHandover, KillAtHandover, KillAtHandover, KillAtResize, Resize, Drain}
	switch o.Seed % 5 { // something else besides
	case 0:
		o.Overlap.Kinds = append(o.Overlap.Kinds, KillInRecovery, PowerCut, Pause, Order)
	case 1:
		o.Overlap.Kinds = append(o.Overlap.Kinds, KillAtMove, Order, Order, FullMemory)
	case 2:
		o.Overlap.Kinds = append(o.Overlap.Kinds, Cut, KillInRecovery, Storm, StoreFailures)
	}
	o.Overlap.Open, o.Overlap.Core, o.Overlap.Spare, o.Overlap.Max = 1+int(o.Seed/2%3), false, false, 0
	o.Overlap.Early = false
	o.Clients, o.Objects = 3, 8+o.Farm.Machines
}

// drains runs the simulator with n seeds, with machines that are drained, and with options changed by
// with. It returns the sum of their results.
func drains(t *testing.T, n uint64, with func(*Options)) (total Result) {
	t.Helper()
	from := uint64(1)
	switch {
	case *seed != 0:
		from, n = *seed, 1
	case nightly:
		n = 1000
	}
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
	t.Logf("%d machines were drained, %d killed at moves, %d at resizes, %d at handovers; %d replicas were to move by hand, of which %d were granted, %d have moved; %d regions were handed over; %d other numbers of replicas were asked for, of which %d were granted, regions have got or lost replicas %d times for them",
		total.Faults[Drain], total.Faults[KillAtMove], total.Faults[KillAtResize], total.Faults[KillAtHandover], total.Faults[Order], total.Orders, total.Moves, total.Handovers, total.Faults[Resize], total.Resizes, total.Regrown)
	return total
}

// haveMoved checks that the runs with several seeds have moved replicas.
func haveMoved(t *testing.T, total Result) {
	t.Helper()
	if *seed == 0 && total.Moves == 0 {
		t.Error("no replica has moved")
	}
}

// haveResized checks that the runs with several seeds have changed the number of replicas, and killed machines just then.
func haveResized(t *testing.T, total Result) {
	t.Helper()
	if *seed == 0 && (total.Resizes == 0 || total.Regrown == 0 || total.Faults[KillAtResize] == 0) {
		t.Errorf("%d numbers of replicas were granted, regions have got or lost replicas %d times, %d machines killed at that: want some", total.Resizes, total.Regrown, total.Faults[KillAtResize])
	}
}
