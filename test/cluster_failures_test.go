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

// A failure is what a killed machine has cost.
type failure struct {
	isCM bool
	// suspected is from the kill to the first machine that suspects, active from
	// there to all regions active, throughput from there to the end of the first
	// window in which clients of the others get 80 % of what they had before, whole
	// from the kill, with the machine started again after throughput, to all regions
	// having all replicas.
	suspected, active, throughput, whole time.Duration
	regions                              int
	filled                               int64 // bytes
}

const (
	windowBefore  = 500 * time.Millisecond // that the throughput before is taken from
	window        = 20 * time.Millisecond
	throughputOld = 0.8
)

// TestClusterFailureTimes measures how long clients notice that a machine has been
// killed, a plain one and the CM in turns, and prints the distribution. Only that
// all of them end is asserted: the times are for docs/benchmarks.md.
func TestClusterFailureTimes(t *testing.T) {
	failures := 5
	if nightly {
		failures = 40
	}
	f := newFleet(t, 5, 3, "")
	// A machine that comes back is primary of nothing, and has a region allocated for
	// what it inserts. In regions of 16 MB, whose blocks have 128 KB, there would be
	// more and more to fill.
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

// fail kills a machine and returns what that has cost, with everything whole
// again.
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
	// The CM's clock and the others' are the same here; what is later counts.
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

// filledSince is how many bytes the machine has copied for replicas that it is to
// keep.
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

// recovered returns how long after begin the first window ends in which the
// clients of the survivors get throughputOld of what they got before killed.
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

// since returns what was acknowledged since a moment, but for what clients have
// had to wait for mu to say.
func (l *fleetLoad) since(moment time.Time) []completion {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := len(l.done)
	for from > 0 && !l.done[from-1].at.Before(moment) {
		from--
	}
	return slices.Clone(l.done[from:])
}

// forget lets go of what was acknowledged before a moment: there are millions in
// the long mode.
func (l *fleetLoad) forget(before time.Time) {
	kept := l.since(before)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = kept
}

// table is the distribution of what failures have cost, as in docs/benchmarks.md.
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
