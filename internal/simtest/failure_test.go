package simtest

import (
	"flag"
	"runtime"
	"slices"
	"testing"
	"time"
)

var failures = flag.Int("failures", 1, "how often each kind of failure is measured")

// TestFailures measures failures of an instance with the paper's parameters (SOSP'15 section 6.4),
// in virtual time. It has ninety machines at night, and ten otherwise.
func TestFailures(t *testing.T) {
	machines := 10
	if nightly {
		machines = 90
	}
	for _, which := range []Failing{FailingMachine, FailingCM, FailingDomain} {
		t.Run(which.String(), func(t *testing.T) {
			var all []Failure
			for s := range uint64(*failures) {
				f, err := Fail(paperOptions(1+s, machines), which)
				if err != nil {
					t.Fatalf("seed %d: %v", 1+s, err)
				}
				if f.Suspect > suspectMax || f.Active > activeMax || f.Throughput > activeMax {
					t.Errorf("seed %d: suspected after %v, active after %v, at %v of the throughput after %v", 1+s, f.Suspect, f.Active, enough, f.Throughput)
				}
				if !isPlausible(f, machines) {
					t.Errorf("seed %d: not what can be", 1+s)
				}
				t.Logf("%v of %d: %+v", which, machines, f)
				all = append(all, f)
				runtime.GC()
			}
			logMedians(t, all)
		})
	}
}

// isPlausible reports whether the steps came in order, and whether a thread's throughput is about
// that of the paper's threads, for which the costs were chosen.
func isPlausible(f Failure, machines int) bool {
	perThread := f.Before / float64(machines-f.Failed)
	return 0 < f.Probed && f.Probed < f.Stored && f.Stored < f.Committed && f.Committed < f.Active && f.Active < f.Filled &&
		f.Recovered > 0 && perThread > 30e3 && perThread < 60e3
}

func logMedians(t *testing.T, all []Failure) {
	for _, of := range []struct {
		name string
		of   func(Failure) time.Duration
	}{
		{"suspect", func(f Failure) time.Duration { return f.Suspect }},
		{"probed", func(f Failure) time.Duration { return f.Probed }},
		{"stored", func(f Failure) time.Duration { return f.Stored }},
		{"committed", func(f Failure) time.Duration { return f.Committed }},
		{"all active", func(f Failure) time.Duration { return f.Active }},
		{"80 % of the throughput", func(f Failure) time.Duration { return f.Throughput }},
		{"filled", func(f Failure) time.Duration { return f.Filled }},
	} {
		var ds []time.Duration
		for _, f := range all {
			ds = append(ds, of.of(f))
		}
		slices.Sort(ds)
		t.Logf("%s: median %v of %d, %v to %v", of.name, ds[len(ds)/2], len(ds), ds[0], ds[len(ds)-1])
	}
}
