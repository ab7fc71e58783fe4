package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestCrash kills a loaded server with SIGKILL at random moments, and starts it again on the same
// folder. It compares the data with the acknowledged transactions. FARMSQL_SEED repeats a run's
// choices.
func TestCrash(t *testing.T) {
	kills := 10
	if nightly {
		kills = 100
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FARMSQL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			t.Logf("seed %d", seed)
			crash(t, l, rand.New(rand.NewPCG(seed, uint64(i))), kills)
		})
	}
}

func crash(t *testing.T, l layout, rnd *rand.Rand, kills int) {
	folder := t.TempDir()
	m := newModel()
	schema := &schemaWorker{}
	for kill := range kills {
		if rnd.IntN(3) == 0 {
			killEarly(t, folder, l, time.Duration(rnd.IntN(100))*time.Millisecond)
		}
		s, err := launch(folder, l.flags()...)
		if err != nil {
			t.Fatalf("start %d: %v", kill, err)
		}
		db := s.open(t, "crash")
		if kill == 0 {
			exec1(t, db, "create table t (id int primary key, worker int not null, n int not null, pad varchar(200), key by_worker (worker, n), unique key by_n (n, id))")
			createBank(t, db)
		} else if !m.compare(t, db, kill) || !schema.compare(t, db, kill) {
			s.kill()
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		var load sync.WaitGroup
		for worker := range 6 {
			w := &crashWorker{worker: worker, db: db, model: m, rnd: rand.New(rand.NewPCG(rnd.Uint64(), uint64(worker)))}
			load.Go(func() { w.run(ctx) })
		}
		load.Go(func() { schema.run(ctx, db) })
		time.Sleep(time.Duration(rnd.IntN(600)) * time.Millisecond)
		if kill == 0 { // on a slow computer, too, there shall be something to lose
			select {
			case <-m.began:
			case <-s.exited:
				t.Fatalf("ended by itself: %v\n%s", s.err, s.stderr)
			}
		}
		s.kill()
		cancel()
		load.Wait()
		_ = db.Close()
	}
	s, err := launch(folder, l.flags()...)
	if err != nil {
		t.Fatal(err)
	}
	m.compare(t, s.connect(t, "crash"), kills)
	schema.compare(t, s.connect(t, "crash"), kills)
	s.stop(t)
	check(t, folder)
	t.Logf("%d kills: %d changes acknowledged, %d in flight of which %d survived, %d schema changes",
		kills, m.acknowledged, m.inFlight, m.survived, schema.done)
}

// killEarly kills a server while it starts: in the middle of recovery.
func killEarly(t *testing.T, folder string, l layout, after time.Duration) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--data", folder, "--listen", "127.0.0.1:0"}, l.flags()...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// row is the state of one row of t; the zero row is none at all.
type row struct{ worker, n int }

// A change has the changes of one transaction to t: all of them commit, or none.
type change map[int]row

// model has the expected data: everything acknowledged, and all or nothing of each transaction that
// was in flight when the server died.
type model struct {
	mu      sync.Mutex
	rows    map[int]row
	pending []change
	began   chan struct{} // closed when something has been acknowledged

	acknowledged, inFlight, survived int
}

func newModel() *model { return &model{rows: make(map[int]row), began: make(chan struct{})} }

func (m *model) acknowledge(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apply(c)
	m.acknowledged++
	if m.acknowledged == 1 {
		close(m.began)
	}
}

func (m *model) apply(c change) {
	for id, r := range c {
		if r == (row{}) {
			delete(m.rows, id)
		} else {
			m.rows[id] = r
		}
	}
}

// uncertain records a transaction whose outcome is unknown.
func (m *model) uncertain(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = append(m.pending, c)
	m.inFlight++
}

// compare compares the database with the model, and so learns the outcomes of uncertain
// transactions. Each worker has its own rows and one transaction at a time, so these outcomes are
// independent.
func (m *model) compare(t *testing.T, db *stdsql.DB, kill int) bool {
	t.Helper()
	found := make(map[int]row)
	for _, query := range []string{"select id, worker, n from t", "select id, worker, n from t where worker >= 0", "select id, worker, n from t where n >= 0 order by n"} {
		rows, err := readRows(db, query)
		if err != nil {
			t.Errorf("kill %d: %v", kill, err)
			return false
		}
		if len(found) > 0 && len(rows) != len(found) {
			t.Errorf("kill %d: %s finds %d rows, another index %d", kill, query, len(rows), len(found))
		}
		found = rows
	}
	for _, c := range m.pending {
		there := 0
		for id, r := range c {
			if found[id] == r {
				there++
			}
		}
		switch there {
		case len(c):
			m.apply(c)
			m.survived++
		default: // then none of it: the comparison below sees half of it
		}
	}
	m.pending = nil
	for id, want := range m.rows {
		if found[id] != want {
			t.Errorf("kill %d: row %d is %v, want %v", kill, id, found[id], want)
		}
	}
	for id, got := range found {
		if _, ok := m.rows[id]; !ok {
			t.Errorf("kill %d: row %d is %v, want none", kill, id, got)
		}
	}
	if err := readBank(context.Background(), db, kill); err != nil {
		t.Errorf("kill %d: %v", kill, err)
	}
	return !t.Failed()
}

func readRows(db *stdsql.DB, query string) (map[int]row, error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[int]row)
	for rows.Next() {
		var id int
		var r row
		if err := rows.Scan(&id, &r.worker, &r.n); err != nil {
			return nil, err
		}
		found[id] = r
	}
	return found, rows.Err()
}

// A crashWorker changes rows of its own, and moves money between common
// accounts, until its connection breaks.
type crashWorker struct {
	worker int
	db     *stdsql.DB
	model  *model
	rnd    *rand.Rand
}

func (w *crashWorker) run(ctx context.Context) {
	for ctx.Err() == nil {
		var err error
		if w.rnd.IntN(4) == 0 {
			err = transfer(ctx, w.db, w.rnd)
		} else {
			err = w.change(ctx)
		}
		if err != nil && !isConflict(err) {
			return // the server is gone
		}
	}
}

// errKnown wraps an error that proves that the transaction had no effect.
var errKnown = errors.New("no effect")

// change runs one transaction over a few of the worker's rows.
func (w *crashWorker) change(ctx context.Context) error {
	c := w.choose()
	err := w.commit(ctx, c)
	switch {
	case err == nil:
		w.model.acknowledge(c)
	case isConflict(err) || errors.Is(err, errKnown):
	default:
		w.model.uncertain(c)
	}
	return err
}

// choose picks new states for one to four rows.
func (w *crashWorker) choose() change {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	c := make(change)
	for range 1 + w.rnd.IntN(4) {
		id := w.worker*1000 + w.rnd.IntN(200)
		if _, exists := w.model.rows[id]; exists && w.rnd.IntN(3) == 0 {
			c[id] = row{}
		} else {
			c[id] = row{worker: w.worker, n: 1 + w.rnd.IntN(1_000_000)}
		}
	}
	return c
}

// commit applies c. It uses a transaction for several rows, and in half of the other cases;
// otherwise it uses a single statement.
func (w *crashWorker) commit(ctx context.Context, c change) error {
	if len(c) == 1 && w.rnd.IntN(2) == 0 {
		return w.write(ctx, w.db, c)
	}
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return errors.Join(errKnown, err)
	}
	if err := w.write(ctx, tx, c); err != nil {
		_ = tx.Rollback()
		return errors.Join(errKnown, err)
	}
	return tx.Commit()
}

type execer interface {
	ExecContext(context.Context, string, ...any) (stdsql.Result, error)
}

func (w *crashWorker) write(ctx context.Context, x execer, c change) error {
	for id, r := range c {
		var err error
		if r == (row{}) {
			_, err = x.ExecContext(ctx, "delete from t where id = ?", id)
		} else {
			_, err = x.ExecContext(ctx, "insert into t values (?, ?, ?, ?) on duplicate key update n = values(n), pad = values(pad)",
				id, r.worker, r.n, fmt.Sprintf("%0*d", w.rnd.IntN(200), r.n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A schemaWorker creates, changes and drops one table, over and over.
type schemaWorker struct {
	next int // step that was begun last, or is to be begun
	done int
}

// schemaSteps are statements, each with the number of rows in the table after it, or -1 if the
// table is gone.
var schemaSteps = []struct {
	query string
	rows  int
}{
	{"create table s (a int primary key, b int)", 0},
	{"insert into s values (1, 5), (2, 5), (3, 6), (4, null)", 4},
	{"create index by_b on s (b)", 4},
	{"alter table s add column c varchar(10) not null default 'x'", 4},
	{"create unique index by_c on s (c, a)", 4},
	{"truncate table s", 0},
	{"insert into s values (9, 9, 'y')", 1},
	{"drop table s", -1},
}

func (w *schemaWorker) run(ctx context.Context, db *stdsql.DB) {
	for w.next = 0; ; {
		_, err := db.ExecContext(ctx, schemaSteps[w.next].query)
		if isConflict(err) {
			continue
		}
		if err != nil {
			return // the server is gone
		}
		w.done++
		w.next = (w.next + 1) % len(schemaSteps)
	}
}

// compare expects the table as it was before or after the step in flight, and drops it.
func (w *schemaWorker) compare(t *testing.T, db *stdsql.DB, kill int) bool {
	t.Helper()
	before := -1
	if w.next > 0 {
		before = schemaSteps[w.next-1].rows
	}
	found := -1
	var exists int
	err := db.QueryRow("select count(*) from information_schema.tables where table_schema = 'crash' and table_name = 's'").Scan(&exists)
	if err == nil && exists == 1 {
		err = db.QueryRow("select count(*) from s").Scan(&found)
	}
	if err == nil {
		_, err = db.Exec("drop table if exists s")
	}
	if err != nil || (found != before && found != schemaSteps[w.next].rows) {
		t.Errorf("kill %d in %q: %d rows (%v), want %d or %d", kill, schemaSteps[w.next].query, found, err, before, schemaSteps[w.next].rows)
		return false
	}
	w.next = 0
	return true
}
