package sqlsim

import (
	"flag"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/simtest"
)

var (
	seed    = flag.Uint64("seed", 0, "run only this seed")
	nightly = os.Getenv("FARMSQL_NIGHTLY") != ""
)

// durationMax is how long sessions and faults go on in the runs of tests.
const durationMax = 6 * time.Millisecond

// draw returns a short run, with faults that overlap.
func draw(seed uint64) simtest.Options {
	o := WithSQL(simtest.Draw(seed).Overlapping())
	o.Duration = min(o.Duration, durationMax)
	return o
}

// With any faults, the sessions' reads, writes and results over SQL are strictly serializable. In
// the end the catalog and each row and index are sound, and nothing leaks.
func TestSQLInTheSimulator(t *testing.T) {
	from, n := uint64(1), 10
	switch {
	case *seed != 0:
		from, n = *seed, 1
	case nightly:
		n = 1000
	case invariant.Enabled: // slow
		n = 5
	}
	var total simtest.Result
	for s := from; s < from+uint64(n); s++ {
		o := draw(s)
		r := simtest.Run(o)
		total.Add(r)
		if r.Err != nil {
			t.Fatalf("%v\n%v", r.Err, o)
		}
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d runs: %v", n, total)
	if *seed == 0 && total.Tables < 20*n {
		t.Errorf("only %d statements have defined something", total.Tables)
	}
}

// The same seed gives the same run with SQL, too, whatever the number of processors is.
func TestSeedDecides(t *testing.T) {
	for s := uint64(1); s <= 2; s++ {
		first := simtest.Run(draw(s))
		before := runtime.GOMAXPROCS(1)
		second := simtest.Run(draw(s))
		runtime.GOMAXPROCS(before)
		if first.Line() != second.Line() {
			t.Errorf("two runs are:\n%s\n%s", first.Line(), second.Line())
		}
		runtime.GC() // unmaps the runs' memory
	}
}
