package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/internal/lists"
)

// A fleetLoad runs clients at all machines of a fleet, and records the answers to them. Each client
// connects to one machine, and reconnects to the same one.
type fleetLoad struct {
	t     *testing.T
	fleet *fleet
	seed  uint64
	// regionsWait means that data may wait for machines that are away: error 1047, which clients
	// then get, does not fail the test.
	regionsWait bool

	stop    context.CancelFunc
	clients sync.WaitGroup

	lastID      atomic.Int64
	transfers   atomic.Int64 // acknowledged
	doubtful    atomic.Int64 // transfers whose outcome nobody has heard
	reads       atomic.Int64 // of the bank's total
	conflicts   atomic.Int64
	lost        atomic.Int64 // operations that failed with their machine
	unavailable atomic.Int64 // operations that failed for want of machines

	inserted atomic.Int64 // rows, acknowledged
	deleted  atomic.Int64

	mu    sync.Mutex
	fates map[int64]fate
	// rows are the rows that certainly exist and that nobody is deleting, the oldest first.
	rows []int64
	done []completion
	busy map[string]time.Time // clients by name, and since when they have waited for an answer
}

// rowsMost bounds the rows of the table. Without a bound, each failure would leave more to fill
// than the last one.
const rowsMost = 1000

// A fate is the knowledge of clients about a row. Rows that certainly do not exist have no fate:
// their insertion was refused, or their deletion acknowledged.
type fate uint8

const (
	acknowledged fate = iota + 1
	doubtful          // its insertion, or its deletion
)

// A completion is an operation that was acknowledged.
type completion struct {
	at      time.Time
	machine int
}

// prepare makes the tables.
func (l *fleetLoad) prepare() {
	l.t.Helper()
	db := l.connect(l.fleet.machines[0], "")
	defer db.Close()
	exec1(l.t, db, "create database fleet")
	db = l.connect(l.fleet.machines[0], "fleet")
	defer db.Close()
	createBank(l.t, db)
	exec1(l.t, db, "create table rows_ (id bigint primary key, machine int not null, pad varchar(100), key by_machine (machine))")
}

func (l *fleetLoad) connect(m *machine, schema string) *stdsql.DB {
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/%s", m.address(), schema))
	if err != nil {
		l.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// An operation is what a client does over and over, at the machine that db is
// connected to.
type operation func(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error

// begin starts the clients, on each machine one for each operation.
func (l *fleetLoad) begin(operations ...operation) {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.busy = make(map[string]time.Time)
	if l.fates == nil {
		l.fates = make(map[int64]fate)
	}
	l.t.Cleanup(l.end)
	for _, m := range l.fleet.machines {
		for i, o := range operations {
			rnd := rand.New(rand.NewPCG(l.seed, uint64(m.id*10+i)))
			l.clients.Go(func() { l.client(ctx, fmt.Sprintf("client %d of machine %d", i, m.id), m, rnd, o) })
		}
	}
}

// end stops the clients. If some of them get no answer, end reports an error and kills the
// machines. It also kills the machines of a test that has already failed.
func (l *fleetLoad) end() {
	l.t.Helper()
	l.stop()
	if l.t.Failed() {
		l.fleet.killAll()
	}
	ended := make(chan struct{})
	go func() {
		l.clients.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(startTimeout):
		l.t.Errorf("clients that have got no answer after %v:%s\n%s", startTimeout, l.waiting(), l.fleet.remains())
		l.fleet.killAll()
		<-ended
	}
}

// waiting describes which clients wait for an answer, and for how long.
func (l *fleetLoad) waiting() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l.busy)) {
		fmt.Fprintf(&b, "\n\t%s: %v", name, time.Since(l.busy[name]).Round(time.Millisecond))
	}
	return b.String()
}

// during notes that a client waits for an answer, until the function that it
// returns is called.
func (l *fleetLoad) during(name string) (ended func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[name] = time.Now()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.busy, name)
	}
}

func (l *fleetLoad) client(ctx context.Context, name string, m *machine, rnd *rand.Rand, o operation) {
	for ctx.Err() == nil {
		if !m.serves() {
			time.Sleep(time.Millisecond)
			continue
		}
		db := l.connect(m, "fleet")
		for ctx.Err() == nil && m.serves() {
			upsets := m.upsets()
			ended := l.during(name)
			// Not ctx: an operation that has begun must report its outcome.
			err := o(context.Background(), db, m, rnd)
			ended()
			if err == nil {
				l.complete(m)
			} else if isConflict(err) {
				l.conflicts.Add(1)
			} else if l.regionsWait && isAbsence(err) {
				l.unavailable.Add(1)
			} else if l.lost.Add(1); !l.excused(ctx, m, upsets, err) {
				break
			}
		}
		_ = db.Close()
	}
}

func (l *fleetLoad) complete(m *machine) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, completion{now, m.id})
}

// excused reports an error, unless it is a lost connection, or an unknown
// outcome, at a machine that was killed or evicted meanwhile.
func (l *fleetLoad) excused(ctx context.Context, m *machine, upsets int, err error) bool {
	if isLost(err) {
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if m.upsets() > upsets {
				return true
			}
		}
	}
	l.t.Errorf("a client of machine %d: %v\n%s", m.id, err, l.fleet.tails())
	return false
}

// isAbsence reports whether err is the error of a client whose data, or room for more data, wait
// for a machine that is away.
func isAbsence(err error) bool {
	return numberOf(err) == errUnavailable || numberOf(err) == errFull && strings.Contains(err.Error(), "not enough failure domains")
}

// errFull is MySQL's error number for missing room.
const errFull = 1114

// isLost reports whether err is the error of a client whose machine has gone: a broken connection,
// 1053 (shutdown), or 1180 (outcome of a commit unknown).
func isLost(err error) bool {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number == 1053 || e.Number == 1180
	}
	return !errors.Is(err, errWrong) && !errors.Is(err, lists.ErrText)
}

// errWrong means that a machine has shown a wrong result.
var errWrong = errors.New("wrong result")

func (l *fleetLoad) transfer(ctx context.Context, db *stdsql.DB, _ *machine, rnd *rand.Rand) error {
	err := transfer(ctx, db, rnd)
	switch {
	case err == nil:
		l.transfers.Add(1)
	case !isConflict(err):
		l.doubtful.Add(1)
	}
	return err
}

// newID returns an id that no row has, far from those of other rows: neighbours
// conflict.
func (l *fleetLoad) newID() int64 {
	return scatter(l.lastID.Add(1))
}

func scatter(n int64) int64 { return int64(uint64(n) * 0x9e3779b97f4a7c15 >> 1) }

// lookup reads rows by key. Some of the keys do not exist.
func (l *fleetLoad) lookup(ctx context.Context, db *stdsql.DB, _ *machine, rnd *rand.Rand) error {
	id := scatter(l.lastID.Load() - rnd.Int64N(2*rowsMost)) // half of which have been deleted
	var found int64
	err := db.QueryRowContext(ctx, "select id from rows_ where id = ?", id).Scan(&found)
	if errors.Is(err, stdsql.ErrNoRows) {
		return nil
	}
	if err == nil && found != id {
		return fmt.Errorf("%w: row %d is found as %d", errWrong, id, found)
	}
	return err
}

// replace inserts rows, or deletes the oldest ones if there are too many, no matter which machine
// has inserted them: one row, or two in a transaction.
func (l *fleetLoad) replace(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
	n := 1 + rnd.IntN(2)
	if ids := l.tooMany(n); len(ids) > 0 {
		return l.delete(ctx, db, ids)
	}
	return l.insert(ctx, db, m, rnd, n)
}

// insert inserts rows with ids of their own.
func (l *fleetLoad) insert(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand, n int) error {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = l.newID()
	}
	err := l.forEach(ctx, db, ids, func(x execer, id int64) error {
		_, err := x.ExecContext(ctx, "insert into rows_ values (?, ?, ?)", id, m.id, fmt.Sprintf("%0*d", rnd.IntN(100), id))
		return err
	})
	switch {
	case err == nil:
		l.are(ids, acknowledged)
		l.inserted.Add(int64(n))
	case !isConflict(err):
		l.are(ids, doubtful)
	}
	return err
}

// delete deletes rows that are there.
func (l *fleetLoad) delete(ctx context.Context, db *stdsql.DB, ids []int64) error {
	err := l.forEach(ctx, db, ids, func(x execer, id int64) error {
		result, err := x.ExecContext(ctx, "delete from rows_ where id = ?", id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%w: deleting row %d, which is there, deleted %d (%v)", errWrong, id, n, err)
		}
		return nil
	})
	switch {
	case err == nil:
		l.areGone(ids)
		l.deleted.Add(int64(len(ids)))
	case isConflict(err):
		l.are(ids, acknowledged)
	default:
		l.are(ids, doubtful)
	}
	return err
}

// forEach runs a statement for one row alone, and for several in a transaction.
func (l *fleetLoad) forEach(ctx context.Context, db *stdsql.DB, ids []int64, f func(x execer, id int64) error) error {
	if len(ids) == 1 {
		return f(db, ids[0])
	}
	return l.inTransaction(ctx, db, func(tx *stdsql.Tx) error {
		for _, id := range ids {
			if err := f(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// tooMany returns the n oldest rows if there are too many. Nobody else gets them to delete.
func (l *fleetLoad) tooMany(n int) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows) < rowsMost {
		return nil
	}
	ids := l.rows[:n]
	l.rows = l.rows[n:]
	return ids
}

func (l *fleetLoad) are(ids []int64, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.fates[id] = f
		if f == acknowledged {
			l.rows = append(l.rows, id)
		}
	}
}

func (l *fleetLoad) areGone(ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		delete(l.fates, id)
	}
}

func (l *fleetLoad) inTransaction(ctx context.Context, db *stdsql.DB, f func(*stdsql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// read adds up the bank.
func (l *fleetLoad) read(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
	sum, err := sumBank(ctx, db, rnd.IntN(4))
	if err == nil && sum != bankAccounts*bankBalance {
		return fmt.Errorf("%w: the total is %d at machine %d", errWrong, sum, m.id)
	}
	if err == nil {
		l.reads.Add(1)
	}
	return err
}

// verify compares the data at a machine with the answers to clients.
func (l *fleetLoad) verify(m *machine) {
	t := l.t
	t.Helper()
	db := l.connect(m, "fleet")
	defer db.Close()
	for way := range 4 {
		if err := l.again(func() error { return readBank(t.Context(), db, way) }); err != nil {
			t.Errorf("machine %d: %v", m.id, err)
		}
	}
	var versions int64
	if err := l.again(func() error { return db.QueryRow("select sum(version) from bank").Scan(&versions) }); err != nil {
		t.Errorf("machine %d: %v", m.id, err)
	}
	if sure, most := 2*l.transfers.Load(), 2*(l.transfers.Load()+l.doubtful.Load()); versions < sure || versions > most || versions%2 != 0 {
		t.Errorf("machine %d: %d changes of accounts, want %d to %d", m.id, versions, sure, most)
	}
	for _, query := range []string{"select id from rows_", "select id from rows_ where machine >= 0 order by machine"} {
		var found map[int64]bool
		err := l.again(func() (err error) { found, err = readIDs(db, query); return err })
		if err != nil {
			t.Errorf("machine %d: %s: %v", m.id, query, err)
			continue
		}
		l.compare(m, query, found)
	}
}

// again repeats a read while it conflicts.
func (l *fleetLoad) again(f func() error) error {
	for {
		if err := f(); !isConflict(err) {
			return err
		}
	}
}

func (l *fleetLoad) compare(m *machine, query string, found map[int64]bool) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing, strange int
	for id, f := range l.fates {
		if f == acknowledged && !found[id] {
			missing++
		}
	}
	for id := range found {
		if l.fates[id] == 0 {
			strange++
		}
	}
	if missing > 0 || strange > 0 {
		l.t.Errorf("machine %d: %s: of %d acknowledged and doubtful rows %d are there: %d acknowledged ones are missing, %d should not be there",
			m.id, query, len(l.fates), len(found), missing, strange)
	}
}

func readIDs(db *stdsql.DB, query string) (map[int64]bool, error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[int64]bool)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if found[id] {
			return nil, fmt.Errorf("row %d is there twice", id)
		}
		found[id] = true
	}
	return found, rows.Err()
}

// String describes the work of the clients.
func (l *fleetLoad) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d transfers acknowledged and %d doubtful, %d rows inserted and %d deleted, %d reads of the total, %d conflicts, %d operations lost with their machine",
		l.transfers.Load(), l.doubtful.Load(), l.inserted.Load(), l.deleted.Load(), l.reads.Load(), l.conflicts.Load(), l.lost.Load())
}
