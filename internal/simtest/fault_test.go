package simtest

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/step"
)

// puppetSteps are the steps of a puppet's recovery.
var puppetSteps = []recovery.Step{recovery.StepStored, recovery.StepVoted}

// A puppet takes every fault and does nothing but boot, step and recover.
type puppet struct {
	run    *run
	hooks  Hooks
	every  time.Duration // a step; no steps if it is 0
	fell   int
	starts int
}

func (c *puppet) Takes(Fault) bool                                 { return true }
func (c *puppet) RecoverySteps() []recovery.Step                   { return puppetSteps }
func (c *puppet) Died(machines []int)                              { c.fell += len(machines) }
func (c *puppet) Machine(int) *txn.Machine                         { return nil }
func (c *puppet) Whole() bool                                      { return c.run.world.Now()%3 > 0 }
func (c *puppet) Lives(int) catalog.Lives                          { return nil }
func (c *puppet) Primaries(int) (cluster.ID, []region.ID)          { return 0, nil }
func (c *puppet) Check(iter.Seq[region.Ptr]) ([]farm.Fault, error) { return nil, nil }

func (c *puppet) Start(machines []int) error {
	c.starts++
	var processes []*sim.Process
	for _, i := range machines {
		p := c.run.machine(i).Boot()
		processes = append(processes, p)
		p.Go(func() {
			for s := step.Step(0); c.every > 0; s = (s + 1) % step.Step(step.Count) {
				c.hooks.Step(i, s)
				c.hooks.Recovering(i, puppetSteps[int(s)%len(puppetSteps)])
				p.Sleep(c.every)
			}
		})
	}
	c.run.outside.Sleep(time.Millisecond)
	for _, p := range processes {
		if p.Dead() {
			return errDied
		}
	}
	return nil
}

// Every kind of fault is injected, at machines of any kind, and healed.
func TestFaults(t *testing.T) {
	for f := range single {
		t.Run(f.String(), func(t *testing.T) {
			r, c := injectPuppet(t, f, 3, 10*time.Microsecond)
			if n := r.result.Faults[f]; n < 10 {
				t.Errorf("injected %d times", n)
			}
			if crash := f != Spike && f != Pause && f != Cut && f != CutOneWay; crash != (c.fell >= 10) || crash != (c.starts > 10) {
				t.Errorf("%d processes fell, %d starts", c.fell, c.starts)
			}
			steps, recovering := sum(r.result.Steps[:]), sum(r.result.Recovery[:])
			if at := f == PowerCutAtStep || f == KillAtStep; at && steps != r.result.Faults[f] || !at && steps > 0 {
				t.Errorf("%d crashes at steps, of %d", steps, r.result.Faults[f])
			}
			if in := f == PowerCutInRecovery || f == KillInRecovery || f == CutInRecovery; in && (recovering != r.result.Faults[f] || !r.met(puppetSteps)) || !in && recovering > 0 {
				t.Errorf("%d faults at steps of recovery, of %d", recovering, r.result.Faults[f])
			}
		})
	}
}

// injectPuppet injects one kind of fault for a second into five machines that do a
// step of a transaction and one of recovery now and then.
func injectPuppet(t *testing.T, f Fault, replicas int, every time.Duration) (*run, *puppet) {
	o := Draw(3)
	o.Farm.Machines, o.Farm.Replicas, o.Faults, o.Calm = 5, replicas, []Fault{f}, time.Millisecond
	w := sim.New(sim.Options{Seed: 3})
	r := &run{options: o, world: w, outside: w.Outside(), rng: w.Rand()}
	j := &injector{run: r, struck: r.outside.NewEvent()}
	c := &puppet{run: r, every: every, hooks: Hooks{Step: j.onStep, Recovering: j.onRecovering}}
	r.cluster = c
	err := w.Run(func() {
		r.nodes = make([]*node, o.Farm.Machines)
		if err := r.start(r.all()); err != nil {
			t.Fatal(err)
		}
		r.until = w.Now() + time.Second
		if err := j.injectAll(); err != nil {
			t.Fatal(err)
		}
		for _, i := range r.all() {
			if r.machine(i).Process() == nil {
				t.Errorf("machine %d is down", i)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

// met reports whether there was a fault at each of the steps of recovery.
func (r *run) met(steps []recovery.Step) bool {
	return !slices.ContainsFunc(steps, func(s recovery.Step) bool { return r.result.Recovery[s] == 0 })
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Only faults that have happened count. If no step ever comes, no fault at a step counts: only the
// first of two faults, or the plain fault in its place. A cut of no machine does not count.
func TestFaultsThatDoNotCome(t *testing.T) {
	for _, c := range []struct {
		fault    Fault
		replicas int
		instead  Fault
	}{
		{PowerCutAtStep, 3, PowerCut}, {PowerCutInRecovery, 3, PowerCut},
		{KillAtStep, 3, Kill}, {KillInRecovery, 3, Kill}, {CutInRecovery, 3, Kill},
		{Cut, 1, Cut}, {CutOneWay, 1, CutOneWay},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			r, _ := injectPuppet(t, c.fault, c.replicas, 0)
			for f, n := range r.result.Faults {
				if instead := Fault(f) == c.instead && f != int(c.fault); instead != (n >= 10) || !instead && n > 0 {
					t.Errorf("%v: %d times", Fault(f), n)
				}
			}
			if at := sum(r.result.Steps[:]) + sum(r.result.Recovery[:]); at > 0 {
				t.Errorf("%d faults at steps", at)
			}
		})
	}
}

// A cluster that does not become whole again is a violation, after a fault or
// without one.
func TestNotWholeAgain(t *testing.T) {
	for whole, want := range []string{"while it was calm: not whole again after 30s", "after spike: not whole again after 30s"} {
		o := Draw(3)
		o.Farm.Machines, o.Faults = 3, []Fault{Spike}
		w := sim.New(sim.Options{Seed: 3})
		r := &run{options: o, world: w, outside: w.Outside(), rng: w.Rand(), until: time.Hour}
		j := &injector{run: r, struck: r.outside.NewEvent()}
		r.cluster = &failing{&puppet{run: r, every: time.Second, hooks: Hooks{Step: j.onStep, Recovering: j.onRecovering}}, whole}
		err := w.Run(func() {
			r.nodes = make([]*node, o.Farm.Machines)
			if err := r.start(r.all()); err != nil {
				t.Fatal(err)
			}
			if err := j.injectAll(); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A failing puppet reports that it is whole a limited number of times.
type failing struct {
	*puppet
	whole int
}

func (c *failing) Whole() bool {
	c.whole--
	return c.whole >= 0
}
