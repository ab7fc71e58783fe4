package simtest

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/txn/lookup"
)

// What NSDI'14 reports in section 4.2: lookups a second of a machine alone and of each of 20, and the latency of these.
const (
	paperAlone   = 26e6
	paperOf20    = 146e6 / 20
	paperLatency = 35 * time.Microsecond
)

// isNear reports whether a figure is at most a part away from what it is compared with.
func isNear[T ~int64 | ~float64](got, want T, part float64) bool {
	return float64(got) > float64(want)*(1-part) && float64(got) < float64(want)*(1+part)
}

func lookUp(t *testing.T, o Options, w lookup.Way) Throughput {
	t.Helper()
	got, err := LookUp(o, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d machines, %d lookups at a time each, %v: %.2f million a second each, %v, %.2f READs, %.2f messages",
		o.Farm.Machines, o.Clients, w, got.PerMachine/1e6, got.Latency, got.Reads, got.Messages)
	return got
}

// TestPaperLookups: on machines with the paper's hardware, lookups have the paper's throughput and latency, and READs do about
// twice as many as messages do (NSDI'14, section 4.2). There are 20 machines at night, and 10 otherwise, among which a
// tenth of the keys is at a lookup's own machine.
func TestPaperLookups(t *testing.T) {
	if invariant.Enabled {
		t.Skip("takes minutes in a build with checks, and measures the same virtual time")
	}
	if alone := lookUp(t, hardwareOptions(1, 1), lookup.OneSided); !isNear(alone.PerMachine, paperAlone, 0.05) || alone.Reads+alone.Messages > 0 {
		t.Errorf("alone: want %.1f million, and nothing of others", paperAlone/1e6)
	}
	counts := []int{10}
	if nightly {
		counts = []int{2, 5, 10, 20}
	}
	var byReads, byMessages Throughput
	for _, n := range counts {
		byReads, byMessages = lookUp(t, hardwareOptions(1, n), lookup.OneSided), lookUp(t, hardwareOptions(1, n), lookup.TwoSided)
	}
	if !isNear(byReads.PerMachine, paperOf20, 0.3) || !isNear(byReads.Latency, paperLatency, 0.3) || byReads.Messages > 0.01 {
		t.Errorf("by READs: want %.1f million and %v", paperOf20/1e6, paperLatency)
	}
	if times := byReads.PerMachine / byMessages.PerMachine; times < 1.4 || times > 2.5 || byMessages.Reads > 0.01 {
		t.Errorf("READs do %.1f times as many as messages, want about twice as many", times)
	}
}

// TestReadsOfHardware: a READ takes 2 us if nobody else does anything.
func TestReadsOfHardware(t *testing.T) {
	quiet := func(machines int) Throughput {
		o := hardwareOptions(1, machines)
		o.Clients = 1
		return lookUp(t, o, lookup.OneSided)
	}
	alone, among := quiet(1), quiet(5)
	read := time.Duration(float64(among.Latency-alone.Latency) / among.Reads)
	if !isNear(read, 2*time.Microsecond, 0.25) {
		t.Errorf("a READ takes %v", read)
	}
}
