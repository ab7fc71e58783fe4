package simtest

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/recovery"
)

// gcPercent makes garbage collection rarer than usual, as in farmsql sim: a run's garbage is collected when it ends. Runs
// take a fifth less of the processor.
const gcPercent = 400

func TestMain(m *testing.M) {
	debug.SetGCPercent(gcPercent)
	goleak.VerifyTestMain(m)
}

var (
	seed    = flag.Uint64("seed", 0, "run only this seed")
	nightly = os.Getenv("FARMSQL_NIGHTLY") != ""
)

// runSeeds runs n seeds and adds up what they did.
func runSeeds(t *testing.T, from uint64, n int, draw func(uint64) Options) (total Result) {
	for s := from; s < from+uint64(n); s++ {
		o := draw(s)
		r := Run(o)
		total.Add(r)
		if r.Err != nil {
			t.Fatalf("%v\n%v\nreplay: farmsql sim --seed %d", r.Err, o, s)
		}
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d runs: %v", n, total)
	return total
}

func TestRuns(t *testing.T) {
	from, n := uint64(1), 20
	switch {
	case *seed != 0:
		from, n = *seed, 1
	case nightly:
		n = 1000
	case invariant.Enabled: // slow
		n = 5
	}
	total := runSeeds(t, from, n, Draw)
	if n < 1000 { // after which every kind of fault has come
		return
	}
	for f, count := range total.Faults[:single] {
		if count == 0 {
			t.Errorf("no %v", Fault(f))
		}
	}
	for _, s := range oftenMet {
		if total.Recovery[s] == 0 {
			t.Errorf("no fault at step %v of recovery", s)
		}
	}
}

// seldomMet are steps of recovery at which drawn faults seldom happen. TestSecondFaults makes sure
// that they do.
var seldomMet = []recovery.Step{recovery.StepSuspected, recovery.StepProbed, recovery.StepFilling, recovery.StepFilled}

var oftenMet = slices.DeleteFunc((&members{}).RecoverySteps(), func(s recovery.Step) bool { return slices.Contains(seldomMet, s) })

// The test kills a second machine at each step of recovery at which that seldom happens by chance.
func TestSecondFaults(t *testing.T) {
	for _, s := range seldomMet {
		t.Run(s.String(), func(t *testing.T) {
			var total Result
			for seed := uint64(1); seed <= 4 || seed <= 16 && total.Recovery[s] == 0; seed++ { // the step comes in a third of the runs
				o := Draw(seed)
				o.Farm.Machines, o.Farm.Replicas, o.Domains = 6, 3, 6
				o.Duration, o.Calm, o.Faults, o.Second = 20*time.Millisecond, 200*time.Microsecond, []Fault{KillInRecovery}, []recovery.Step{s}
				r := Run(o)
				if total.Add(r); r.Err != nil {
					t.Fatalf("seed %d: %v", seed, r.Err)
				}
				runtime.GC() // unmaps the run's memory
			}
			if total.Recovery[s] == 0 {
				t.Errorf("no fault at step %v", s)
			}
		})
	}
}

// Ninety machines, as in the paper.
func TestNinetyMachines(t *testing.T) {
	if !nightly {
		t.Skip("only with FARMSQL_NIGHTLY: takes gigabytes of address space")
	}
	o := Draw(4)
	o.Farm.Replicas, o.Faults = 3, []Fault{Spike, Pause, PowerCut}
	if r := Run(o.With(90)); r.Err != nil {
		t.Error(r.Err)
	} else {
		t.Log(r)
	}
}

// The same seed gives the same run, no matter what the runtime does meanwhile.
func TestSeedDecides(t *testing.T) {
	for s := range uint64(6) {
		first := Run(Draw(s))
		runtime.GC()
		before := runtime.GOMAXPROCS(1)
		second := Run(Draw(s))
		runtime.GOMAXPROCS(before)
		if first.Err != nil || first.Hash != second.Hash {
			t.Errorf("seed %d: %v; hashes %x and %x, events %d and %d", s, first.Err, first.Hash, second.Hash, first.Events, second.Events)
		}
	}
}
