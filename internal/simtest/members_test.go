package simtest

import (
	"errors"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/step"
)

// Machines are whole only when no earlier event will change the configuration any more. A mended
// cut has broken connections: a machine that meets one makes the CM change the configuration,
// perhaps without the peer. A fault before that would be one fault more than the replicas can
// survive.
func TestWholeLasts(t *testing.T) {
	changes := 0
	for seed := uint64(16); seed < 26; seed++ { // among them some in which each part of it matters
		o := Draw(seed)
		o.Farm.Machines, o.Farm.Replicas, o.Domains, o.World.Loss, o.Clients, o.Readers, o.Duration = 5, 2, 5, 0, 1, 0, time.Hour
		r := newRun(o)
		m := NewMembers(r.world, o.Farm, Hooks{Prepare: r.prepare, Serving: r.serving, Step: func(int, step.Step) {}, Recovering: func(int, recovery.Step) {}}).(*members)
		r.cluster = m
		err := r.world.Run(func() {
			if err := r.start(r.all()); err != nil {
				t.Fatal(err)
			}
			if err := r.setUp(); err != nil {
				t.Fatal(err)
			}
			r.until = o.Duration
			for _, n := range r.nodes {
				r.startClients(n)
			}
			r.awaitWhole(m)
			before, _ := m.store.Load()
			j := &injector{run: r}
			links := j.linksOf([]int{int(seed % 5)}, seed%2 == 0)
			j.sever(Cut, links)
			r.outside.Sleep(time.Duration(r.rng.IntN(2000)) * time.Microsecond)
			for _, l := range links {
				r.world.Mend(l[0], l[1])
			}
			r.awaitWhole(m)
			whole, _ := m.store.Load()
			changes += int(whole.ID - before.ID)
			r.outside.Sleep(leaseTime)
			if after, _ := m.store.Load(); after.ID != whole.ID {
				t.Errorf("seed %d: whole in configuration %d, and then there was %d", seed, whole.ID, after.ID)
			}
			r.stopping = true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if changes == 0 {
		t.Error("no cut has changed the configuration")
	}
}

// Members report every step in RecoverySteps.
func TestRecoverySteps(t *testing.T) {
	var told [recovery.Steps]int
	for seed := uint64(1); seed <= 3; seed++ {
		o := Draw(seed)
		o.Farm.Machines, o.Farm.Replicas, o.Faults, o.Duration, o.Calm = 5, 3, []Fault{KillAtStep}, 5*time.Millisecond, time.Millisecond
		o.New = func(w *sim.World, cfg farm.Config, h Hooks) Cluster {
			recovering := h.Recovering
			h.Recovering = func(i int, s recovery.Step) {
				told[s]++
				recovering(i, s)
			}
			return NewMembers(w, cfg, h)
		}
		if r := Run(o); r.Err != nil {
			t.Fatalf("seed %d: %v", seed, r.Err)
		}
	}
	for _, s := range (&members{}).RecoverySteps() {
		if told[s] == 0 {
			t.Errorf("no step %v", s)
		}
	}
}

// A power cut while machines begin their lives ends these lives, and the machines are started
// again, no matter how far a life gets until its next wait.
func TestPowerCutWhileStarting(t *testing.T) {
	for _, at := range []recovery.Step{recovery.StepStored, recovery.StepApplied, recovery.StepCommitted, recovery.StepActive, recovery.StepAllActive} {
		o := Draw(4)
		o.Farm.Machines, o.Farm.Replicas, o.World.Loss = 4, 3, 0
		r := newRun(o)
		armed, struck := false, false
		var m *members
		m = NewMembers(r.world, o.Farm, Hooks{Prepare: r.prepare, Serving: r.serving, Step: func(int, step.Step) {}, Recovering: func(_ int, s recovery.Step) {
			if armed && s == at {
				armed, struck = false, true
				r.world.PowerCut(nil)
				m.Died(r.all())
			}
		}}).(*members)
		r.cluster = m
		err := r.world.Run(func() {
			if err := r.start(r.all()); err != nil {
				t.Fatal(err)
			}
			r.awaitWhole(m)
			r.world.PowerCut(nil)
			m.Died(r.all())
			armed = true
			if err := r.start(r.all()); err != nil && !errors.Is(err, errDied) {
				t.Errorf("%v: %v", at, err)
			}
			for !struck { // some steps come when all serve
				r.outside.Sleep(time.Millisecond)
			}
			if err := r.start(r.all()); err != nil {
				t.Errorf("%v: %v", at, err)
			}
			r.awaitWhole(m)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Machines that do not complete their save at a power cut come back empty, and get their data from
// the others.
func TestPowerCutUnsaved(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		o := Draw(seed)
		o.Farm.Machines, o.Farm.Replicas, o.Domains = 4+int(seed%3), 2+int(seed%2), 4
		o.Faults, o.Calm = []Fault{PowerCutUnsaved}, time.Millisecond
		r := Run(o)
		if r.Err != nil || r.Faults[PowerCutUnsaved] == 0 {
			t.Errorf("seed %d: %v; %v", seed, r, r.Err)
		}
	}
}

func (r *run) awaitWhole(c Cluster) {
	for !c.Whole() {
		r.outside.Sleep(10 * time.Microsecond)
	}
}

// The final check accepts only one fault: a root object that a dead machine has left behind.
func TestSpareRoot(t *testing.T) {
	root := region.MakePtr(region.MakeAddr(1, 0x440), 20, 0)
	spare := region.MakePtr(region.MakeAddr(2, 0x440), 20, 0)
	fault := func(k region.FaultKind, p region.Ptr) farm.Fault {
		return farm.Fault{Machine: 1, Fault: region.Fault{Kind: k, Ptr: p}}
	}
	if !isSpareRoot(root, fault(region.Leak, spare)) {
		t.Error("a root object that nobody uses is let pass")
	}
	for _, f := range []farm.Fault{
		fault(region.Leak, root), fault(region.Damaged, spare),
		fault(region.Leak, region.MakePtr(region.MakeAddr(2, 0x440), 2, 0)),
	} {
		if isSpareRoot(root, f) {
			t.Errorf("%v is let pass", f)
		}
	}
}
