package test

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A fault is something that happens to a machine.
type fault struct {
	name string
	// begin begins the fault, and returns a function that ends it. The machine then comes back.
	begin func(t *testing.T, m *machine) (end func())
}

// faults are the faults of single machines. TestCutLinkBounds is about faults of links.
var faults = []fault{
	{"killed (kill -9)", func(_ *testing.T, m *machine) func() {
		m.kill()
		return m.start
	}},
	{"stopped (SIGSTOP)", func(_ *testing.T, m *machine) func() {
		m.signal(syscall.SIGSTOP)
		return func() { m.signal(syscall.SIGCONT) }
	}},
	{"wedged (all threads stopped but the lease thread)", func(t *testing.T, m *machine) func() {
		return stopAllButLeases(t, m.cmd.Process.Pid)
	}},
}

// TestFaultBounds: while clients change rows at all machines, a machine is killed, stopped or
// wedged; then the CM. The others suspect it within two leases and have all regions active within
// ten, and none of their clients waits longer than a few leases. The test logs the times, for
// docs/benchmarks.md.
func TestFaultBounds(t *testing.T) {
	rounds := 1
	if nightly {
		rounds = 10
	}
	for _, k := range faults {
		t.Run(k.name, func(t *testing.T) {
			f := newFleet(t, 3, 3, "")
			f.keepLogs()
			f.start()
			f.awaitWhole()
			length, ok := f.leases()
			if !ok {
				t.Skip("leases are not kept by a thread of their own")
			}
			l := &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}
			l.prepare()
			b := &ballast{t: t, load: l}
			b.prepare(1 << 20)
			for _, isCM := range []bool{false, true} {
				var all []bounds
				for range rounds {
					all = append(all, b.befall(k, isCM, length))
				}
				t.Logf("leases of %v\n%s", length, boundsTable(k, isCM, all))
			}
			for _, m := range f.machines {
				b.verify(m)
			}
		})
	}
}

// leases returns the lease time, if a thread keeps the leases.
func (f *fleet) leases() (time.Duration, bool) {
	e, ok := f.machines[0].find(time.Time{}, func(e *event) bool { return e.Message == "leases" })
	return time.Duration(e.Length), ok && e.KeptBy != "goroutine"
}

// bounds are the times that a fault has cost, from its begin.
type bounds struct {
	suspected, active time.Duration
	// longest is the longest time for which a client of another machine has waited for a change.
	longest time.Duration
}

// befall injects a fault into a machine, and returns when everything is whole again.
func (b *ballast) befall(k fault, isCM bool, lease time.Duration) (got bounds) {
	t, f, w := b.t, b.load.fleet, &waits{}
	t.Helper()
	victim := f.cm()
	if !isCM {
		victim = f.machines[(victim.id+1)%len(f.machines)]
	}
	upsets := victim.upsets()
	b.load.begin(w.timed(b.touch), w.timed(b.touch))
	time.Sleep(500 * time.Millisecond) // of undisturbed work
	begun := time.Now()
	end := k.begin(t, victim)
	f.wait("all regions to be active without it", func() (ok bool) {
		got.active, ok = f.activeWithout(victim, begun)
		return ok
	})
	got.suspected = f.suspectedAfter(victim, begun, got.active)
	time.Sleep(500 * time.Millisecond) // the clients that wait get their answers
	end()
	f.wait("the machine to notice", func() bool { return victim.upsets() > upsets })
	f.awaitWhole()
	b.load.end()
	got.longest = w.longest(begun, victim)
	if got.suspected > 2*lease+slack || got.active > 10*lease+slack || got.longest > 10*lease+2*slack {
		t.Errorf("%s (CM: %v), leases of %v: suspected after %v, all regions active after %v; a client of another machine waited %v", k.name, isCM, lease, got.suspected, got.active, got.longest)
	}
	return got
}

// activeWithout returns how long after a moment all regions were active in a
// configuration without the machine.
func (f *fleet) activeWithout(victim *machine, since time.Time) (time.Duration, bool) {
	if f.isMember(victim) {
		return 0, false
	}
	for _, m := range f.machines {
		if e, ok := m.find(since, func(e *event) bool { return e.Message == "reconfigured" }); ok {
			return e.Time.Sub(since), true
		}
	}
	return 0, false
}

// suspectedAfter returns the time until the first machine suspected the victim. It returns most if
// none did, because the victim was left out together with another.
func (f *fleet) suspectedAfter(victim *machine, since time.Time, most time.Duration) time.Duration {
	for _, m := range f.machines {
		e, ok := m.find(since, func(e *event) bool {
			return e.Message == "machine suspected" && e.Suspect != nil && *e.Suspect == victim.id
		})
		if ok {
			most = min(most, e.Time.Sub(since))
		}
	}
	return most
}

// waits are the operations of clients, each with its duration and its machine.
type waits struct {
	mu  sync.Mutex
	all []waited
}

type waited struct {
	machine    int
	begin, end time.Time
}

// timed records the duration of each operation that was acknowledged or conflicted.
func (w *waits) timed(o operation) operation {
	return func(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
		begin := time.Now()
		err := o(ctx, db, m, rnd)
		if err == nil || isConflict(err) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.all = append(w.all, waited{m.id, begin, time.Now()})
		}
		return err
	}
}

// longest returns the longest wait that ended after a moment, of clients of machines other than the
// victim.
func (w *waits) longest(since time.Time, victim *machine) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.all {
		if x.machine != victim.id && x.end.After(since) {
			longest = max(longest, x.end.Sub(x.begin))
		}
	}
	return longest
}

// boundsTable returns the times that faults have cost, as a table like in docs/benchmarks.md.
func boundsTable(k fault, isCM bool, all []bounds) string {
	who := "a machine that is not the CM"
	if isCM {
		who = "the CM"
	}
	var b strings.Builder
	b.WriteString("| fault | of | faults | milliseconds | minimum | median | maximum |\n| --- | --- | ---:| --- | ---:| ---:| ---:|\n")
	for _, column := range []struct {
		name string
		of   func(bounds) time.Duration
	}{
		{"to the first suspicion", func(x bounds) time.Duration { return x.suspected }},
		{"to all regions active", func(x bounds) time.Duration { return x.active }},
		{"longest change at the others", func(x bounds) time.Duration { return x.longest }},
	} {
		values := make([]time.Duration, len(all))
		for i, x := range all {
			values[i] = column.of(x)
		}
		slices.SortFunc(values, cmp.Compare[time.Duration])
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %.0f | %.0f | %.0f |\n", k.name, who, len(all), column.name, ms(values[0]), ms(values[(len(values)-1)/2]), ms(values[len(values)-1]))
	}
	return b.String()
}
