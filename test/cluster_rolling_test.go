package test

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// A rolling is a run of rolling kills.
type rolling struct {
	machines, replicas int
	together           int // how many machines are killed at once
	bytes              int // of data, in each of the replicas
	rounds             int
}

func (r rolling) String() string {
	how := "one after the other"
	switch r.together {
	case 1:
	case r.machines:
		how = "all at once"
	default:
		how = fmt.Sprintf("%d at once", r.together)
	}
	return fmt.Sprintf("%d machines, %d replicas, %s", r.machines, r.replicas, how)
}

// TestRollingKills kills all machines of a cluster in turn, while clients write at all of them. It
// kills the next machine as soon as the last one answers clients, filled or not. A region without a
// full replica waits for its machine. After each round nothing acknowledged is missing, and all
// regions have all replicas. The test logs the times, for docs/benchmarks.md. FARMSQL_ROLLING_MB is
// the amount of data, and FARMSQL_ROLLING_ROUNDS the number of rounds.
func TestRollingKills(t *testing.T) {
	megabytes, rounds := 8, 1
	if nightly {
		megabytes, rounds = 800, 20
	}
	megabytes, rounds = numberIn(t, "FARMSQL_ROLLING_MB", megabytes), numberIn(t, "FARMSQL_ROLLING_ROUNDS", rounds)
	for _, r := range []rolling{
		{machines: 3, replicas: 3, together: 1}, {machines: 3, replicas: 2, together: 1},
		{machines: 5, replicas: 3, together: 1}, {machines: 5, replicas: 2, together: 1},
		{machines: 3, replicas: 3, together: 2}, {machines: 5, replicas: 3, together: 2},
		{machines: 3, replicas: 3, together: 3}, {machines: 5, replicas: 2, together: 5},
	} {
		r.bytes, r.rounds = megabytes<<20, rounds
		t.Run(r.String(), func(t *testing.T) { roll(t, r) })
	}
}

// numberIn returns the number in a variable of the environment, or else other.
func numberIn(t *testing.T, variable string, other int) int {
	t.Helper()
	s := os.Getenv(variable)
	if s == "" {
		return other
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of at least 1", variable, s)
	}
	return n
}

// activeMax bounds the time from the start of the awaited machine until all regions are active, on
// a computer that does other things, too.
const activeMax = 5 * time.Second

// A round has the costs of killing all machines in turn. Times count from the start of the last
// process: of the machine for which the others wait.
type round struct {
	// answers is the longest time that a machine took to answer clients.
	answers       time.Duration
	active, whole time.Duration
	copied, held  int64 // bytes, of the replicas that had to be filled
}

func roll(t *testing.T, r rolling) {
	f := newFleet(t, r.machines, r.replicas, "")
	f.patience = 5 * time.Minute
	if r.bytes >= 100<<20 {
		f.more = []string{"--region-size", "64MiB"}
	}
	f.keepLogs()
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}
	l.prepare()
	b := &ballast{t: t, load: l}
	b.prepare(r.bytes)
	f.awaitWhole()
	var rounds []round
	for n := range r.rounds {
		l.begin(lightly(l.transfer), lightly(l.replace), lightly(b.touch))
		got := f.rollOver(r.together)
		l.end()
		for _, m := range f.machines {
			l.verify(m)
		}
		b.verify(f.machines[n%r.machines])
		if got.active > activeMax {
			t.Errorf("round %d: %v until all regions are active, at most %v expected", n+1, got.active, activeMax)
		}
		if t.Failed() {
			return
		}
		t.Logf("round %d: answers %v, active %v, whole %v, %d bytes copied of %d", n+1, got.answers, got.active, got.whole, got.copied, got.held)
		rounds = append(rounds, got)
	}
	t.Logf("%v; %d rows of the data changed, %d changes with an unknown outcome, %d errors 1047\n%s", l, b.touched, b.doubtful, l.unavailable.Load(), rollingTable(r, rounds))
}

// keepLogs writes what machines have logged into the test's artifacts if it fails.
func (f *fleet) keepLogs() {
	f.t.Cleanup(func() {
		if !f.t.Failed() {
			return
		}
		for _, m := range f.machines {
			m.mu.Lock()
			log := strings.Join(m.lines, "\n")
			m.mu.Unlock()
			file := filepath.Join(f.t.ArtifactDir(), fmt.Sprintf("machine-%d.log", m.id))
			if err := os.WriteFile(file, []byte(log), 0o644); err != nil {
				f.t.Error(err)
			}
		}
	})
}

// rollOver kills all machines, some at a time. It starts these again, and goes on when they answer.
// It returns when everything is whole.
func (f *fleet) rollOver(together int) (r round) {
	f.t.Helper()
	begin := time.Now()
	var started time.Time
	for first := 0; first < len(f.machines); first += together {
		victims := f.machines[first:min(first+together, len(f.machines))]
		killTogether(victims)
		started = time.Now()
		for _, m := range victims {
			m.start()
		}
		for _, m := range victims {
			f.wait(fmt.Sprintf("machine %d to answer", m.id), m.answers)
			r.answers = max(r.answers, time.Since(started))
		}
	}
	f.wait("all regions to be active", f.isActive)
	r.active = time.Since(started)
	f.wait("all regions to have all replicas", f.isWhole)
	r.whole = time.Since(started)
	f.awaitServing()
	for _, m := range f.machines {
		copied, held := m.filledOf(begin)
		r.copied, r.held = r.copied+copied, r.held+held
	}
	return r
}

// killTogether kills machines at one moment.
func killTogether(victims []*machine) {
	for _, m := range victims {
		m.mu.Lock()
		m.killed, m.serving = true, false
		m.mu.Unlock()
		_ = m.cmd.Process.Kill()
	}
	for _, m := range victims {
		m.kill()
	}
}

// answers reports whether the machine answers a client that connects now.
func (m *machine) answers() bool {
	if !m.serves() {
		return false
	}
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/?timeout=10s&readTimeout=10s", m.address()))
	if err != nil {
		m.fleet.t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("select 1")
	return err == nil
}

// isActive reports whether all machines are members and the CM has logged that all regions are
// active. It fails the test if a region was lost.
func (f *fleet) isActive() bool {
	f.t.Helper()
	c := f.configuration()
	if len(c.Lost) > 0 {
		f.t.Fatalf("regions %v are lost\n%s", c.Lost, f.tails())
	}
	if len(c.Machines) != len(f.machines) {
		return false
	}
	for _, p := range c.Regions {
		if !p.IsAvailable() {
			return false
		}
	}
	return slices.ContainsFunc(f.machines, func(m *machine) bool {
		_, ok := m.find(time.Time{}, func(e *event) bool { return e.Message == "reconfigured" && e.ID >= uint64(c.ID) })
		return ok
	})
}

// filledOf returns the number of bytes that the machine has copied for its replicas since a moment,
// and the size of these replicas.
func (m *machine) filledOf(since time.Time) (copied, held int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if e.Message == "replica filled" && !e.Time.Before(since) {
			copied, held = copied+e.Bytes, held+e.Of
		}
	}
	return copied, held
}

// lightly makes a client rest before each operation.
func lightly(o operation) operation {
	return func(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
		time.Sleep(5 * time.Millisecond)
		return o(ctx, db, m, rnd)
	}
}

// A ballast is a table of data, whose rows clients change.
type ballast struct {
	t    *testing.T
	load *fleetLoad
	rows int64
	sum  int64 // of crc32 of all that the rows hold

	mu                sync.Mutex // guards the rest
	changes           map[int64]changes
	touched, doubtful int
}

// changes counts the changes of a row, by the answers to clients.
type changes struct{ sure, doubtful int64 }

const (
	ballastRow       = 4000 // bytes
	ballastStatement = 50   // rows
)

// prepare makes the table and rows of that many bytes. All machines insert rows, so that the rows
// are in regions of all machines.
func (b *ballast) prepare(bytes int) {
	t := b.t
	t.Helper()
	begin := time.Now()
	b.changes = make(map[int64]changes)
	machines := b.load.fleet.machines
	db := b.load.connect(machines[0], "fleet")
	defer db.Close()
	exec1(t, db, fmt.Sprintf("create table ballast (id bigint primary key, n bigint not null default 0, pad varchar(%d) not null)", ballastRow))
	statements := max(len(machines), bytes/ballastRow/ballastStatement)
	var group errgroup.Group
	for i, m := range machines {
		group.Go(func() error {
			db := b.load.connect(m, "fleet")
			defer db.Close()
			for s := i; s < statements; s += len(machines) {
				if err := b.insert(db, int64(s*ballastStatement)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	b.rows = int64(statements * ballastStatement)
	if err := db.QueryRow("select sum(crc32(pad)) from ballast").Scan(&b.sum); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows of %d bytes in %v", b.rows, ballastRow, time.Since(begin))
}

// insert inserts rows from an id on, and retries while that conflicts.
func (b *ballast) insert(db *stdsql.DB, first int64) error {
	var s strings.Builder
	s.WriteString("insert into ballast (id, pad) values ")
	for id := first; id < first+ballastStatement; id++ {
		if id > first {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, "(%d,'%s')", id, strings.Repeat(fmt.Sprintf("%08d", id), ballastRow/8))
	}
	return b.load.again(func() error { _, err := db.Exec(s.String()); return err })
}

// touch changes a row.
func (b *ballast) touch(ctx context.Context, db *stdsql.DB, _ *machine, rnd *rand.Rand) error {
	id := rnd.Int64N(b.rows)
	_, err := db.ExecContext(ctx, "update ballast set n = n + 1 where id = ?", id)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.changes[id]
	switch {
	case err == nil:
		c.sure++
		b.touched++
	case !isConflict(err):
		c.doubtful++
		b.doubtful++
	}
	b.changes[id] = c
	return err
}

// verify compares the rows at a machine with the answers to clients.
func (b *ballast) verify(m *machine) {
	t := b.t
	t.Helper()
	db := b.load.connect(m, "fleet")
	defer db.Close()
	var rows, sum int64
	err := b.load.again(func() error {
		return db.QueryRow("select count(*), sum(crc32(pad)) from ballast").Scan(&rows, &sum)
	})
	if err != nil || rows != b.rows || sum != b.sum {
		t.Errorf("machine %d: %d rows, whose sum is %d, want %d and %d: %v", m.id, rows, sum, b.rows, b.sum, err)
	}
	found := make(map[int64]int64)
	err = b.load.again(func() error { return readCounts(db, "select id, n from ballast where n > 0", found) })
	if err != nil {
		t.Errorf("machine %d: %v", m.id, err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, n := range found {
		if c := b.changes[id]; n < c.sure || n > c.sure+c.doubtful {
			t.Errorf("machine %d: row %d has %d changes, want %d to %d", m.id, id, n, c.sure, c.sure+c.doubtful)
		}
	}
	for id, c := range b.changes {
		if c.sure > 0 && found[id] == 0 {
			t.Errorf("machine %d: row %d has no changes, want %d", m.id, id, c.sure)
		}
	}
}

// readCounts reads ids and counts.
func readCounts(db *stdsql.DB, query string, into map[int64]int64) error {
	clear(into)
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		into[id] = n
	}
	return errors.Join(rows.Err(), rows.Close())
}

// rollingTable returns the costs of rounds (minimum, median and maximum), as a table like in
// docs/benchmarks.md.
func rollingTable(r rolling, rounds []round) string {
	var b strings.Builder
	b.WriteString("| killed | data, MB | rounds | answers, s | all regions active, s | everything full again, s | copied, MB | of, MB |\n| --- | ---:| ---:| ---:| ---:| ---:| ---:| ---:|\n")
	fmt.Fprintf(&b, "| %v | %d | %d |", r, r.bytes>>20, len(rounds))
	for _, column := range []struct {
		format string
		of     func(round) float64
	}{
		{"%.2f", func(r round) float64 { return r.answers.Seconds() }},
		{"%.2f", func(r round) float64 { return r.active.Seconds() }},
		{"%.2f", func(r round) float64 { return r.whole.Seconds() }},
		{"%.0f", func(r round) float64 { return float64(r.copied) / 1e6 }},
		{"%.0f", func(r round) float64 { return float64(r.held) / 1e6 }},
	} {
		values := make([]float64, len(rounds))
		for i, r := range rounds {
			values[i] = column.of(r)
		}
		slices.SortFunc(values, cmp.Compare[float64])
		last := len(values) - 1
		fmt.Fprintf(&b, strings.ReplaceAll(" F · F · F |", "F", column.format), values[0], values[last/2], values[last])
	}
	return b.String()
}
