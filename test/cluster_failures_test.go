package test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A failure has the times and bytes that a killed machine has cost.
type failure struct {
	isCM bool
	// suspected is the time from the kill to the first suspicion. active is the time from there
	// until all regions are active, and throughput the time from the suspicion to the end of the
	// first window in which clients of the others get 80 % of their former throughput. Then the
	// machine is started again. whole is the time from the kill until all regions have all
	// replicas.
	suspected, active, throughput, whole time.Duration
	regions                              int
	filled                               int64 // bytes
}

const (
	windowBefore  = 500 * time.Millisecond // that the throughput before is taken from
	window        = 20 * time.Millisecond
	throughputOld = 0.8
)

// TestClusterFailureTimes measures for how long clients notice that a machine has been killed, and
// prints the distribution. It kills a plain machine and the CM in turns. It asserts only that each
// failure ends: the times are for docs/benchmarks.md.
func TestClusterFailureTimes(t *testing.T) {
	failures := 5
	if nightly {
		failures = 40
	}
	f := newFleet(t, 5, 3, "")
	// A machine that comes back is primary of no region, and gets a new region for its inserts.
	// With regions of 16 MB, whose blocks have 128 KB, there would be more and more bytes to fill.
	f.more = []string{"--region-size", "4MiB"}
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.replace, l.lookup, l.replace, l.lookup)
	f.wait("as many rows as there shall be", func() bool { return l.deleted.Load() > 0 })
	var all []failure
	for i := range failures {
		time.Sleep(windowBefore + 200*time.Millisecond) // of undisturbed work, to compare with
		all = append(all, l.fail(i%2 == 1))
		if t.Failed() {
			return
		}
	}
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
	lease, ok := f.machines[0].find(time.Time{}, func(e *event) bool { return e.Message == "leases" })
	if !ok {
		t.Error("no lease time has been logged")
	}
	t.Logf("%v\n%d machines, lease %v, kept by a %s\n%s", l, len(f.machines), time.Duration(lease.Length), lease.KeptBy, table(all))
}

var activePattern = regexp.MustCompile(`all regions active (\S+)$`)

// fail kills a machine, waits until everything is whole again, and returns the cost.
func (l *fleetLoad) fail(isCM bool) failure {
	l.t.Helper()
	f := l.fleet
	l.forget(time.Now().Add(-windowBefore))
	victim := f.cm()
	if !isCM {
		victim = f.machines[(victim.id+1)%len(f.machines)]
	}
	killed := victim.kill()
	var suspected, active event
	f.wait("all regions to be active", func() (found bool) {
		for _, m := range f.machines {
			if active, found = m.find(killed, func(e *event) bool { return e.Message == "reconfigured" }); found {
				return true
			}
		}
		return false
	})
	for _, m := range f.machines {
		e, ok := m.find(killed, func(e *event) bool {
			return e.Message == "machine suspected" && e.Suspect != nil && *e.Suspect == victim.id
		})
		if ok && (suspected.Time.IsZero() || e.Time.Before(suspected.Time)) {
			suspected = e
		}
	}
	if suspected.Time.IsZero() {
		suspected = active // a broken connection was faster: the CM counts from there
	}
	steps := activePattern.FindStringSubmatch(active.Steps)
	if steps == nil {
		l.t.Fatalf("no time in %q", active.Steps)
	}
	atCM, err := time.ParseDuration(steps[1])
	if err != nil {
		l.t.Fatal(err)
	}
	// All machines have the same clock here; the later event counts.
	begin := suspected.Time
	if by := active.Time.Add(-atCM); by.Before(begin) {
		begin = by
	}
	result := failure{isCM: isCM, suspected: begin.Sub(killed), active: active.Time.Sub(begin)}
	l.t.Logf("machine %d (CM: %v) killed: suspected after %v; %s", victim.id, isCM, result.suspected, active.Steps)
	f.wait("80 % of the throughput", func() (ok bool) {
		result.throughput, ok = l.recovered(victim.id, killed, begin)
		return ok
	})
	victim.start()
	f.wait("the killed machine to be let in", func() bool { return victim.serves() && f.isMember(victim) })
	f.awaitWhole()
	result.whole = time.Since(killed)
	result.regions = len(f.configuration().Regions)
	for _, m := range f.machines {
		result.filled += m.filledSince(killed)
	}
	l.t.Logf("whole after %v, with %d bytes filled, of %d regions", result.whole.Round(time.Millisecond), result.filled, result.regions)
	return result
}

// filledSince returns the number of bytes that the machine has copied for its replicas.
func (m *machine) filledSince(moment time.Time) (bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e.Message == "replica filled" && !e.Time.Before(moment) {
			bytes += e.Bytes
		}
	}
	return bytes
}

// recovered returns the time from begin to the end of the first window in which the survivors'
// clients get throughputOld of their throughput before killed.
func (l *fleetLoad) recovered(victim int, killed, begin time.Time) (time.Duration, bool) {
	var before float64
	var after []time.Time
	for _, c := range l.since(killed.Add(-windowBefore)) {
		switch {
		case c.machine == victim:
		case c.at.Before(killed):
			before++
		case c.at.After(begin):
			after = append(after, c.at)
		}
	}
	slices.SortFunc(after, time.Time.Compare)
	need := max(1, int(throughputOld*before*float64(window)/float64(windowBefore)))
	for last := need - 1; last < len(after); last++ {
		first := after[last-need+1]
		if after[last].Sub(first) <= window {
			return after[last].Sub(begin), true
		}
	}
	return 0, false
}

// since returns the operations that were acknowledged since a moment, except those whose clients
// were waiting for mu.
func (l *fleetLoad) since(moment time.Time) []completion {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := len(l.done)
	for from > 0 && !l.done[from-1].at.Before(moment) {
		from--
	}
	return slices.Clone(l.done[from:])
}

// forget drops the operations that were acknowledged before a moment: there are millions in the
// long mode.
func (l *fleetLoad) forget(before time.Time) {
	kept := l.since(before)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = kept
}

// table returns the distribution of the costs of failures, as a table like in docs/benchmarks.md.
func table(all []failure) string {
	var b strings.Builder
	b.WriteString("| killed | failures | | minimum | median | 90 % | maximum |\n| --- | ---:| --- | ---:| ---:| ---:| ---:|\n")
	for _, kind := range []struct {
		name string
		isCM bool
	}{{"a plain machine", false}, {"the CM", true}} {
		for _, column := range []struct {
			name string
			of   func(failure) time.Duration
		}{
			{"killed to suspected", func(f failure) time.Duration { return f.suspected }},
			{"suspected to all regions active", func(f failure) time.Duration { return f.active }},
			{"killed to all regions active", func(f failure) time.Duration { return f.suspected + f.active }},
			{"suspected to 80 % of the throughput", func(f failure) time.Duration { return f.throughput }},
			{"killed to all replicas filled", func(f failure) time.Duration { return f.whole }},
		} {
			var ds []time.Duration
			for _, f := range all {
				if f.isCM == kind.isCM {
					ds = append(ds, column.of(f))
				}
			}
			slices.SortFunc(ds, cmp.Compare[time.Duration])
			at := func(q float64) float64 { return float64(ds[int(q*float64(len(ds)-1)+0.5)].Microseconds()) / 1000 }
			fmt.Fprintf(&b, "| %s | %d | %s | %.1f ms | %.1f ms | %.1f ms | %.1f ms |\n", kind.name, len(ds), column.name, at(0), at(0.5), at(0.9), at(1))
		}
	}
	return b.String()
}
