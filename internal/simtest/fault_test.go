package simtest

import (
	"iter"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A puppet takes every fault and does nothing but boot, step and recover.
type puppet struct {
	run    *run
	hooks  Hooks
	every  time.Duration // a step
	fell   int
	starts int
}

func (c *puppet) Takes(Fault) bool                                 { return true }
func (c *puppet) Fell(machines []int)                              { c.fell += len(machines) }
func (c *puppet) Machine(int) *txn.Machine                         { return nil }
func (c *puppet) Whole() bool                                      { return c.run.world.Now()%3 > 0 }
func (c *puppet) Primaries(int) (cluster.ID, []region.ID)          { return 0, nil }
func (c *puppet) Check(iter.Seq[region.Ptr]) ([]farm.Fault, error) { return nil, nil }

func (c *puppet) Start(machines []int) error {
	c.starts++
	var processes []*sim.Process
	for _, i := range machines {
		p := c.run.machine(i).Boot()
		processes = append(processes, p)
		p.Go(func() {
			for s := txn.Step(0); ; s = (s + 1) % txn.Step(txn.Steps) {
				c.hooks.Step(i, s)
				c.hooks.Recovering(i)
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
	for f := range Fault(faults) {
		t.Run(f.String(), func(t *testing.T) {
			o := Draw(3)
			o.Farm.Machines, o.Farm.Replicas, o.Faults, o.Calm = 5, 3, []Fault{f}, time.Millisecond
			w := sim.New(sim.Options{Seed: 3})
			r := &run{options: o, world: w, outside: w.Outside(), rng: w.Rand()}
			j := &injector{run: r, struck: r.outside.NewEvent()}
			c := &puppet{run: r, every: 10 * time.Microsecond, hooks: Hooks{Step: j.onStep, Recovering: j.onRecovering}}
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
			if n := r.result.Faults[f]; n < 10 {
				t.Errorf("injected %d times", n)
			}
			if crash := f != Spike && f != Pause && f != Cut && f != CutOneWay; crash != (c.fell >= 10) || crash != (c.starts > 10) {
				t.Errorf("%d processes fell, %d starts", c.fell, c.starts)
			}
			steps := 0
			for _, n := range r.result.Steps {
				steps += n
			}
			if at := f == PowerCutAtStep || f == KillAtStep; at != (steps >= 10) {
				t.Errorf("%d crashes at steps", steps)
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

// A failing puppet is whole for so many times.
type failing struct {
	*puppet
	whole int
}

func (c *failing) Whole() bool {
	c.whole--
	return c.whole >= 0
}
