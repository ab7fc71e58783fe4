package test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/lists"
)

// TestHostsKeepLists: clusters of three and of five hosts, over TCP with TLS, whose clients append to lists
// and read them at all machines, while one host after the other is killed or cut off, and comes back. What
// the clients are told is strictly serializable, no append is lost, and no client waits for longer than it
// may. The times of all faults are logged, for docs/internals/measurements.md.
func TestHostsKeepLists(t *testing.T) {
	rounds := 1
	if nightly {
		rounds = 20
	}
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d hosts", n), func(t *testing.T) {
			h := newHosts(t, n)
			f := newJoiningFleet(t, 3, newPeersAt(t, h.net))
			f.hosts = h
			f.start()
			f.awaitWhole()
			for len(f.machines) < n {
				f.grow()
			}
			f.letIn()
			newListLoad(t, f).round(rounds)
		})
	}
}

// A hostFault is something that happens to a host, or to its machine.
type hostFault struct {
	name  string
	begin func(h *hosts, victim *machine) (end func())
}

var (
	hostKilled = hostFault{"killed", func(_ *hosts, victim *machine) func() {
		victim.kill()
		return victim.start
	}}
	hostCutOff = hostFault{"cut off", func(h *hosts, victim *machine) func() { return h.cut(victim.id) }}
)

// A listLoad is a fleet whose clients append to lists, and know for how long they wait.
type listLoad struct {
	*fleetLoad
	lists   *lists.Clients
	waits   waits
	lease   time.Duration
	answers answers
}

func newListLoad(t *testing.T, f *fleet) *listLoad {
	t.Helper()
	l := &listLoad{fleetLoad: &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}}
	l.prepare()
	db := l.connect(f.machines[0], "fleet")
	defer db.Close()
	var err error
	if l.lists, err = lists.New(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	var ok bool
	if l.lease, ok = f.leases(); l.lease == 0 {
		t.Fatalf("no lease time has been logged (kept by a thread: %v)", ok)
	}
	return l
}

// begin starts the clients, two on each machine.
func (l *listLoad) begin() {
	operations := []operation{l.waits.timed(listOperation(l.lists.Single).onMachine), l.waits.timed(listOperation(l.lists.Several).onMachine)}
	for i, o := range operations {
		operations[i] = l.answers.noted(i, o)
	}
	l.fleetLoad.begin(operations...)
}

// round lets all faults happen, in rounds, and judges what clients were told.
func (l *listLoad) round(rounds int) {
	t, f := l.t, l.fleet
	t.Helper()
	faults := []hostFault{hostKilled, hostCutOff}
	times := make([][]hostTimes, len(faults))
	l.begin()
	for round := range rounds {
		for i, fault := range faults {
			times[i] = append(times[i], l.befall(fault, f.machines[(round*len(faults)+i)%len(f.machines)]))
		}
	}
	l.end()
	l.judge()
	for i, fault := range faults {
		t.Logf("%d hosts, leases of %v\n%s", len(f.machines), l.lease, hostTable(fault, times[i]))
	}
}

// judge reads all lists at all machines, and checks the history.
func (l *listLoad) judge() {
	l.t.Helper()
	for _, m := range l.fleet.machines {
		db := l.connect(m, "fleet")
		if err := l.again(func() error { return l.lists.ReadAll(l.t.Context(), db, fmt.Sprintf("all at machine %d", m.id)) }); err != nil {
			l.t.Errorf("machine %d: %v", m.id, err)
		}
		_ = db.Close()
	}
	checkLists(l.t, l.lists)
	l.t.Log(l)
}

// hostTimes are the times that a fault has cost.
type hostTimes struct {
	bounds
	whole time.Duration // from its end until all regions have all replicas
	// back is the time from its end until all clients have got an answer, those of its machine included.
	back time.Duration
}

// befall injects a fault, and returns when everything is whole again and all clients get answers.
func (l *listLoad) befall(fault hostFault, victim *machine) (got hostTimes) {
	t, f := l.t, l.fleet
	t.Helper()
	isCM := f.cm() == victim
	begun := time.Now()
	end := fault.begin(f.hosts, victim)
	f.wait("all regions to be active without machine "+fmt.Sprint(victim.id), func() (ok bool) {
		got.active, ok = f.activeWithout(victim, begun)
		return ok
	})
	got.suspected = f.suspectedAfter(victim, begun, got.active)
	without := time.Now()
	l.awaitAnswers(without, func(m int) bool { return m != victim.id })
	ended := time.Now()
	end()
	f.awaitWhole()
	got.whole = time.Since(ended)
	l.awaitAnswers(ended, func(int) bool { return true })
	got.back = time.Since(ended)
	got.longest = l.waits.longest(begun, victim)
	t.Logf("machine %d (CM: %v) %s: suspected after %v, without it after %v, longest wait at the others %v; back: whole after %v, all clients after %v",
		victim.id, isCM, fault.name, ms(got.suspected), ms(got.active), ms(got.longest), ms(got.whole), ms(got.back))
	if most := l.bound(); got.longest > most {
		t.Errorf("machine %d %s: a client of another machine waited %v, longer than %v", victim.id, fault.name, got.longest, most)
	}
	return got
}

// bound is the longest that a client of a machine that is well may wait: it is for a busy computer.
func (l *listLoad) bound() time.Duration { return 10*l.lease + 2*slack }

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// awaitAnswers waits until each client of some machines has got an answer to something that it has asked
// after a moment.
func (l *listLoad) awaitAnswers(since time.Time, of func(machine int) bool) {
	l.t.Helper()
	var missing []string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("without an answer: %s", strings.Join(missing, ", "))
		}
	}()
	l.fleet.wait("clients to get answers", func() bool {
		missing = missing[:0]
		for _, m := range l.fleet.machines {
			for client := range 2 {
				if of(m.id) && !l.answers.since(m.id, client, since) {
					missing = append(missing, fmt.Sprintf("client %d of machine %d", client, m.id))
				}
			}
		}
		return len(missing) == 0
	})
}

// answers are when clients last asked something that was acknowledged.
type answers struct {
	mu   sync.Mutex
	last map[[2]int]time.Time // by machine and client
	all  int
}

// noted notes the answers that a client gets.
func (a *answers) noted(client int, o operation) operation {
	return func(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
		asked := time.Now()
		err := o(ctx, db, m, rnd)
		if err == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.last == nil {
				a.last = make(map[[2]int]time.Time)
			}
			a.last[[2]int{m.id, client}] = asked
			a.all++
		}
		return err
	}
}

func (a *answers) since(machine, client int, moment time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[[2]int{machine, client}].After(moment)
}

// count returns the number of answers so far.
func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// hostTable returns the times that a fault has cost, as a table like in docs/internals/measurements.md.
func hostTable(fault hostFault, all []hostTimes) string {
	var b strings.Builder
	b.WriteString("| a host is | times | milliseconds | minimum | median | 90 % | maximum |\n| --- | ---:| --- | ---:| ---:| ---:| ---:|\n")
	for _, column := range []struct {
		name string
		of   func(hostTimes) time.Duration
	}{
		{"to the first suspicion", func(x hostTimes) time.Duration { return x.suspected }},
		{"to all regions active without it", func(x hostTimes) time.Duration { return x.active }},
		{"longest wait of a client of another host", func(x hostTimes) time.Duration { return x.longest }},
		{"from its return to all replicas filled", func(x hostTimes) time.Duration { return x.whole }},
		{"from its return to answers for its clients", func(x hostTimes) time.Duration { return x.back }},
	} {
		var values []int64
		for _, x := range all {
			values = append(values, column.of(x).Milliseconds())
		}
		slices.Sort(values)
		at := func(q float64) int64 { return values[int(q*float64(len(values)-1)+0.5)] }
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %d | %d | %d |\n", fault.name, len(all), column.name, at(0), at(0.5), at(0.9), at(1))
	}
	return b.String()
}
