package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/internal/history"
)

// listClients append to lists, and read them, over SQL, and record what they are told. A list is a row
// whose text has an element for each append. Nobody reads a list in order to append to it, so that the
// order of the appends is the database's alone.
type listClients struct {
	record   *history.Recorder
	appended atomic.Int64
}

const (
	listsAtOnce = 6
	// listElements is the number of elements of a list, on average, when another one takes its place.
	listElements = 80
)

func (c *listClients) prepare(t *testing.T, db *stdsql.DB) {
	t.Helper()
	exec1(t, db, "create table lists (id bigint primary key, elements text not null)")
	c.record = history.NewRecorder()
}

// list returns one of the lists that are in use.
func (c *listClients) list(rnd *rand.Rand) history.Object {
	return history.Object(c.appended.Load()/(listsAtOnce*listElements)*listsAtOnce + rnd.Int64N(listsAtOnce))
}

// A session is a connection, or a transaction.
type session interface {
	execer
	QueryRowContext(context.Context, string, ...any) *stdsql.Row
}

// single is an operation that appends to a list, or reads one, in a statement that is a transaction.
func (c *listClients) single(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
	r := c.record.Begin(fmt.Sprintf("single at machine %d", m.id))
	err := c.step(ctx, db, r, rnd)
	r.End(outcomeOf(err))
	return err
}

// several is an operation that does so a few times in one transaction.
func (c *listClients) several(ctx context.Context, db *stdsql.DB, m *machine, rnd *rand.Rand) error {
	r := c.record.Begin(fmt.Sprintf("several at machine %d", m.id))
	defer r.End(history.Aborted) // unless it has come to its COMMIT
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op after Commit
	for range 2 + rnd.IntN(3) {
		if err := c.step(ctx, tx, r, rnd); err != nil {
			return err
		}
	}
	err = tx.Commit()
	r.End(outcomeOf(err))
	return err
}

// step appends to a list, or reads one.
func (c *listClients) step(ctx context.Context, x session, r *history.Recording, rnd *rand.Rand) error {
	list := c.list(rnd)
	if rnd.IntN(2) == 0 {
		return c.append(ctx, x, r, list)
	}
	return c.read(ctx, x, r, list)
}

func (c *listClients) read(ctx context.Context, x session, r *history.Recording, list history.Object) error {
	var text string
	err := x.QueryRowContext(ctx, "select elements from lists where id = ?", uint64(list)).Scan(&text)
	if err != nil && !errors.Is(err, stdsql.ErrNoRows) {
		return err
	}
	elements, err := parseList(text)
	if err == nil {
		r.ReadList(list, elements)
	}
	return err
}

func (c *listClients) append(ctx context.Context, x execer, r *history.Recording, list history.Object) error {
	v := c.record.Value()
	r.Append(list, v)
	text := fmt.Sprint(uint64(v))
	_, err := x.ExecContext(ctx, "insert into lists values (?, ?) on duplicate key update elements = concat(elements, ',', ?)", uint64(list), text, text)
	c.appended.Add(1)
	return err
}

// now returns a list, and does not record that.
func (c *listClients) now(t *testing.T, db *stdsql.DB, list history.Object) []history.Value {
	t.Helper()
	var text string
	if err := db.QueryRow("select elements from lists where id = ?", uint64(list)).Scan(&text); err != nil {
		t.Fatal(err)
	}
	elements, err := parseList(text)
	if err != nil {
		t.Fatal(err)
	}
	return elements
}

// readAll reads all lists that were ever in use, in one transaction.
func (c *listClients) readAll(ctx context.Context, db *stdsql.DB, label string) error {
	r := c.record.Begin(label)
	defer r.End(history.Aborted)
	rows, err := db.QueryContext(ctx, "select id, elements from lists")
	if err != nil {
		return err
	}
	defer rows.Close()
	found := make(map[history.Object][]history.Value)
	for rows.Next() {
		var id uint64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return err
		}
		if found[history.Object(id)], err = parseList(text); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for list := range history.Object(c.appended.Load()/(listsAtOnce*listElements)*listsAtOnce + listsAtOnce) {
		r.ReadList(list, found[list])
	}
	r.End(history.Committed)
	return nil
}

func parseList(text string) (elements []history.Value, err error) {
	if text == "" {
		return nil, nil
	}
	for s := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: a list reads %q", errWrong, text)
		}
		elements = append(elements, history.Value(v))
	}
	return elements, nil
}

// outcomeOf returns what a client knows of a transaction after the answer to its COMMIT, or to its only
// statement.
func outcomeOf(err error) history.Outcome {
	var e *mysql.MySQLError
	switch {
	case err == nil:
		return history.Committed
	case errors.As(err, &e) && e.Number != 1053 && e.Number != 1180:
		return history.Aborted
	}
	return history.Unknown
}

// check judges the history. Histories of tests in which hardly anything happened are worth nothing.
func (c *listClients) check(t *testing.T) {
	t.Helper()
	report := c.record.Check(history.Options{Name: func(o history.Object) string { return fmt.Sprintf("list %d", o) }})
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.Committed < 100 || report.Dependencies < 100 {
		t.Errorf("too little has happened: %+v", report)
	}
	t.Logf("history of %d transactions, strictly serializable: %d committed, %d aborted, %d of unknown outcome, %d dependencies, %d appends",
		report.Transactions, report.Committed, report.Aborted, report.Unknown, report.Dependencies, c.appended.Load())
}

// TestListsFindAnomalies: the clients of lists work, on a server that does nothing wrong, and find what
// a server would do that did: the test does it to them.
func TestListsFindAnomalies(t *testing.T) {
	s := start(t, t.TempDir())
	at := &machine{}
	for _, c := range []struct {
		name string
		// plant does something wrong to the lists, of which list 0 has elements that were acknowledged.
		plant func(t *testing.T, db *stdsql.DB, c *listClients)
		want  history.Kind
	}{
		{"nothing", func(*testing.T, *stdsql.DB, *listClients) {}, ""},
		{"an acknowledged append is rolled back", func(t *testing.T, db *stdsql.DB, c *listClients) {
			r := c.record.Begin("planted")
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.append(t.Context(), tx, r, 0); err != nil {
				t.Fatal(err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			r.End(history.Committed)
		}, history.LostAppend},
		{"the oldest element vanishes", func(t *testing.T, db *stdsql.DB, _ *listClients) {
			exec1(t, db, "update lists set elements = substr(elements, instr(elements, ',') + 1) where id = 0")
		}, history.ForkedList},
		{"an append is done twice", func(t *testing.T, db *stdsql.DB, _ *listClients) {
			exec1(t, db, "update lists set elements = concat(elements, ',', substring_index(elements, ',', -1)) where id = 0")
		}, history.DoubledAppend},
		{"what was rolled back is there", func(t *testing.T, db *stdsql.DB, c *listClients) {
			r := c.record.Begin("planted")
			if err := c.append(t.Context(), db, r, 0); err != nil {
				t.Fatal(err)
			}
			r.End(history.Aborted)
		}, history.DirtyRead},
		{"a read is stale", func(t *testing.T, db *stdsql.DB, c *listClients) {
			r := c.record.Begin("append")
			if err := c.append(t.Context(), db, r, 0); err != nil {
				t.Fatal(err)
			}
			r.End(history.Committed)
			r = c.record.Begin("planted") // after the append has ended, but as if it had not happened
			if err := c.read(t.Context(), db, r, 1); err != nil {
				t.Fatal(err)
			}
			elements := c.now(t, db, 0)
			r.ReadList(0, elements[:len(elements)-1])
			r.End(history.Committed)
		}, history.StaleRead},
		{"a skew of writes", func(t *testing.T, db *stdsql.DB, c *listClients) {
			// Both read before either appends, as if they had not noticed each other.
			rs := []*history.Recording{c.record.Begin("planted, one"), c.record.Begin("planted, other")}
			for i, r := range rs {
				if err := c.read(t.Context(), db, r, history.Object(i)); err != nil {
					t.Fatal(err)
				}
			}
			for i, r := range rs {
				if err := c.append(t.Context(), db, r, history.Object(1-i)); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range rs {
				r.End(history.Committed)
			}
		}, history.WriteSkew},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := s.open(t, "lists_"+strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "_"), ",", ""))
			clients := &listClients{}
			clients.prepare(t, db)
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 100 { // fewer than fill the first lists
				for _, o := range []operation{clients.single, clients.several} {
					if err := o(t.Context(), db, at, rnd); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := clients.readAll(t.Context(), db, "all"); err != nil {
				t.Fatal(err)
			}
			c.plant(t, db, clients)
			if err := clients.readAll(t.Context(), db, "all, at the end"); err != nil {
				t.Fatal(err)
			}
			report := clients.record.Check(history.Options{})
			if c.want == "" {
				clients.check(t)
			} else if !slices.ContainsFunc(report.Violations, func(v history.Violation) bool { return v.Kind == c.want }) {
				t.Errorf("want a %s, got %v", c.want, report.Err())
			}
		})
	}
}
