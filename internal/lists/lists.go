// Package lists has clients that append to lists and read them over SQL, and record what they are told, so that package history can judge it.
// A list is a row whose text has an element for each append. Nobody reads a list in order to append to it, so that the
// order of the appends is the database's alone.
package lists

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/internal/history"
)

const (
	listsAtOnce = 6
	// listElements is the number of elements of a list, on average, when another one takes its place.
	listElements = 80
)

// historyLeast is the least number of transactions, and of dependencies, of a history that is worth something.
const historyLeast = 100

// ErrIdle means that too little has happened.
var ErrIdle = errors.New("too little has happened")

// ErrText means that the text of a list is none that was ever written.
var ErrText = errors.New("wrong text of a list")

// Clients are the clients of one table. They are safe for concurrent use.
type Clients struct {
	// Record has what the clients were told.
	Record   *history.Recorder
	appended atomic.Int64
}

// New makes the table in the database that db is connected to.
func New(ctx context.Context, db *stdsql.DB) (*Clients, error) {
	_, err := db.ExecContext(ctx, "create table lists (id bigint primary key, elements text not null)")
	return &Clients{Record: history.NewRecorder()}, err
}

// list returns one of the lists that are in use. After listsAtOnce*listElements appends, the next listsAtOnce
// lists take the places of those in use.
func (c *Clients) list(rnd *rand.Rand) history.Object {
	first := c.appended.Load() / (listsAtOnce * listElements) * listsAtOnce
	return history.Object(first + rnd.Int64N(listsAtOnce))
}

// A Session is a connection, or a transaction.
type Session interface {
	ExecContext(context.Context, string, ...any) (stdsql.Result, error)
	QueryRowContext(context.Context, string, ...any) *stdsql.Row
}

// Single appends to a list, or reads one, in a statement that is a transaction. The label names the client in reports.
func (c *Clients) Single(ctx context.Context, db *stdsql.DB, label string, rnd *rand.Rand) error {
	r := c.Record.Begin("single at " + label)
	err := c.step(ctx, db, r, rnd)
	r.End(outcomeOf(err))
	return err
}

// Several appends to lists and reads lists, a few times, in one transaction.
func (c *Clients) Several(ctx context.Context, db *stdsql.DB, label string, rnd *rand.Rand) error {
	r := c.Record.Begin("several at " + label)
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
func (c *Clients) step(ctx context.Context, x Session, r *history.Recording, rnd *rand.Rand) error {
	list := c.list(rnd)
	if rnd.IntN(2) == 0 {
		return c.Append(ctx, x, r, list)
	}
	return c.Read(ctx, x, r, list)
}

// Read reads a list.
func (c *Clients) Read(ctx context.Context, x Session, r *history.Recording, list history.Object) error {
	var text string
	err := x.QueryRowContext(ctx, "select elements from lists where id = ?", uint64(list)).Scan(&text)
	if err != nil && !errors.Is(err, stdsql.ErrNoRows) {
		return err
	}
	elements, err := Parse(text) // a list without a row is empty
	if err == nil {
		r.ReadList(list, elements)
	}
	return err
}

// Append appends a new element to a list.
func (c *Clients) Append(ctx context.Context, x Session, r *history.Recording, list history.Object) error {
	v := c.Record.Value()
	r.Append(list, v)
	text := fmt.Sprint(uint64(v))
	_, err := x.ExecContext(ctx, "insert into lists values (?, ?) on duplicate key update elements = concat(elements, ',', ?)", uint64(list), text, text)
	c.appended.Add(1)
	return err
}

// ReadAll reads all lists that were ever in use, in one transaction.
func (c *Clients) ReadAll(ctx context.Context, db *stdsql.DB, label string) error {
	r := c.Record.Begin(label)
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
		if found[history.Object(id)], err = Parse(text); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	first := c.appended.Load() / (listsAtOnce * listElements) * listsAtOnce // of those that are in use now: see list
	for list := range history.Object(first + listsAtOnce) {
		r.ReadList(list, found[list])
	}
	r.End(history.Committed)
	return nil
}

// Parse returns the elements of a list, from its text.
func Parse(text string) (elements []history.Value, err error) {
	if text == "" {
		return nil, nil
	}
	for s := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %q", ErrText, text)
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
	case errors.As(err, &e) && e.Number != 1053 && e.Number != 1180: // not Shutdown or Evicted, nor InCommit, of myerr
		return history.Aborted
	}
	return history.Unknown
}

// Check judges the history. One in which hardly anything has happened is worth nothing, and an error.
func (c *Clients) Check() (history.Report, error) {
	report := c.Record.Check(history.Options{Name: func(o history.Object) string { return fmt.Sprintf("list %d", o) }})
	err := report.Err()
	if report.Committed < historyLeast || report.Dependencies < historyLeast {
		err = errors.Join(err, fmt.Errorf("%w: %+v", ErrIdle, report))
	}
	return report, err
}

// Summary says in one line what has happened.
func (c *Clients) Summary(r history.Report) string {
	return fmt.Sprintf("history of %d transactions, strictly serializable: %d committed, %d aborted, %d of unknown outcome, %d dependencies, %d appends",
		r.Transactions, r.Committed, r.Aborted, r.Unknown, r.Dependencies, c.appended.Load())
}
