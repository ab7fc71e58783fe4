package simtest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Machines are killed one after the other, each as soon as the last one serves again, and before
// that has its replicas back. No data are lost: memory is kept, and the others may not continue
// without the machine that has the last full replica.
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

// The same seed gives the same run with overlapping faults, too, no matter on which processor it
// runs and what runs beside it.
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

// Errands (blind writes, operations that are transactions of their own, a growing table, and rows
// of changing sizes) find the right values in spite of faults.
func TestErrands(t *testing.T) {
	var total Result
	for seed := uint64(1); seed <= 10; seed++ {
		o := Draw(seed)
		o.Errands, o.Clients, o.Duration = true, 1, 20*time.Millisecond
		r := Run(o)
		if total.Add(r); r.Err != nil {
			t.Fatalf("%v\n%v", r.Err, o)
		}
		runtime.GC() // unmaps the run's memory
	}
	if total.Errands < 1000 {
		t.Errorf("only %d errands", total.Errands)
	}
}

// Each kind of trouble happens where it is asked for, and does no harm.
func TestTroubles(t *testing.T) {
	var total Result
	for seed := uint64(1); seed <= 4; seed++ {
		o := Draw(seed)
		o.Farm.Machines, o.Farm.Replicas, o.Domains, o.Faults, o.Errands, o.Trouble, o.Stale, o.Duration = 3, 2, 3, nil, true, 100, 300, 20*time.Millisecond
		r := Run(o)
		if total.Add(r); r.Err != nil {
			t.Fatalf("%v\n%v", r.Err, o)
		}
		runtime.GC() // unmaps the run's memory
	}
	for trouble, n := range total.Troubles {
		if n == 0 {
			t.Errorf("trouble %d has not come", trouble)
		}
	}
}

// A register knows what its key may hold, and a read of anything else is a violation.
func TestRegister(t *testing.T) {
	w := sim.New(sim.Options{Seed: 1})
	c := &client{run: &run{world: w}, node: &node{process: w.Outside()}}
	g := &register{values: []uint64{0}}
	for _, step := range []struct {
		write uint64
		err   error
		may   []uint64
	}{
		{1, nil, []uint64{1}},
		{2, errUser, []uint64{1}},
		{3, errUnknown, []uint64{1, 3}},
		{4, nil, []uint64{3, 4}},
		{0, errUnknown, []uint64{0, 3, 4}},
	} {
		if err := c.write(g, step.write, func() error { return step.err }); err != nil {
			t.Fatal(err)
		}
		for v := range uint64(6) {
			if want := slices.Contains(step.may, v); g.mayHold(v) != want {
				t.Errorf("after %d was written, %v: may be %d: %v", step.write, step.err, v, !want)
			}
		}
		if _, sure := g.sure(); sure != (len(step.may) == 1) {
			t.Errorf("after %d was written, %v: sure: %v", step.write, step.err, sure)
		}
	}
	if err := c.write(g, 6, func() error { return outcome.ErrEvicted }); !errors.Is(err, outcome.ErrEvicted) || !g.mayHold(6) {
		t.Errorf("a write of a machine that is evicted: %v, %+v", err, g)
	}
	if err := g.recordRead([]byte("key"), 1); err == nil {
		t.Error("a value that was overwritten can be read")
	}
	if err := g.recordRead([]byte("key"), 3); err != nil || g.mayHold(4) || !g.mayHold(0) {
		t.Errorf("after a pending value was read: %v, %+v", err, g)
	}
	if err := c.write(g, 5, func() error { g.owner = nil; return nil }); err != nil || !g.mayHold(3) || !g.mayHold(5) {
		t.Errorf("a write that ends after another client took over: %v, %+v", err, g)
	}
}

// A machine that is evicted while it begins, in the middle of the transaction that makes
// the root object, begins another life. With this seed it once ended with the error of
// the transaction.
func TestEvictedWhileItBegins(t *testing.T) {
	o := sparing(4176)
	o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(f Fault) bool { return f == LinkCut || f == Flap || f == StoreCut || f == Wedge })
	if r := Run(o); r.Err != nil {
		t.Errorf("%v\n%v", r.Err, o)
	}
}

// wedge makes machines do nothing but keep their leases, and spares a majority.
func wedge(o *Options) {
	o.New = NewMembers
	o.Farm.Machines, o.Farm.Replicas, o.Domains, o.World.Loss, o.Clients = 5, 3, 5, 0, 1
	o.Duration = 200 * time.Millisecond
	o.Overlap = &Overlap{Kinds: []Fault{Wedge}, Open: 1, Max: 6, Hold: 45 * time.Millisecond, Spare: true}
}

// A machine that hangs for longer than leases last finds itself evicted when it goes on, although
// its lease keeper still ran. A machine that hangs for good stops nobody.
func TestWedges(t *testing.T) {
	wedges, forGood, evicted := 0, 0, 0
	for seed := uint64(1); seed <= 4; seed++ {
		o := Draw(seed)
		wedge(&o)
		o.Overlap.Core = true
		o.World.Trace = func(_ time.Duration, what string) {
			if strings.HasPrefix(what, Wedge.String()+" at ") {
				forGood++
			}
			if strings.Contains(what, membership.ErrEvicted.Error()) {
				evicted++
			}
		}
		r := Run(o)
		if wedges += r.Faults[Wedge]; r.Err != nil {
			t.Errorf("seed %d: %v", seed, r.Err)
		}
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d wedges, %d for good, %d machines evicted", wedges, forGood, evicted)
	if wedges < 16 || forGood < 4 || evicted < 8 || evicted > wedges {
		t.Errorf("%d wedges, %d for good, %d machines evicted", wedges, forGood, evicted)
	}
}
