package store

import (
	"context"
	"errors"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

var _ gms.Transaction = (*Transaction)(nil)

// A Transaction is a transaction of go-mysql-server: a FaRM transaction with this package's
// state.
type Transaction struct {
	// Tx is the FaRM transaction.
	Tx *txn.Tx
	// ReadOnly says that the transaction may change nothing (START TRANSACTION READ ONLY).
	ReadOnly bool
	// Ended says that the transaction is over, whatever the outcome.
	Ended bool
	// ddl is set if the running statement changes the catalog.
	ddl bool
	// After is called after the transaction's commit has been attempted; may be nil.
	After func()
	// broken is set if a change of the catalog has failed half way: the transaction must not
	// commit.
	broken bool
	// points are the places to which a statement or savepoint can roll back, oldest first;
	// serial is the last one's number.
	points []point
	serial int
	// Editing is the number of editors that are within a statement.
	Editing int
	// DB caches the database that was last looked up: statements look up the same one many
	// times.
	DB gms.Database
	// rows are the changes of row counts, by the table's counter.
	rows map[region.Ptr]int64
	// created are the sequences that this transaction has created.
	created map[region.Ptr]bool
	// strays are the addresses of keyless rows that the present statement has read, by their
	// contents.
	strays map[string][]region.Ptr
	// moved maps the rows that the transaction has moved to their new addresses, and the
	// deleted ones to nil.
	moved map[region.Ptr]region.Ptr
	// turns are the turns that the transaction holds, and waitsFor is the turn that it waits for; Store.Turns guards
	// both. takesTurns is set once the transaction has held or awaited a turn.
	turns      []*turn
	waitsFor   *turn
	takesTurns bool
	// opened is the time at which the transaction began, if the client has to end it.
	opened time.Time
}

// A point is a mark in the transaction. A statement's point has no name.
type point struct {
	name   string
	serial int
	mark   txn.Mark
}

// String implements gms.Transaction.
func (tr *Transaction) String() string { return "transaction" }

// IsReadOnly implements gms.Transaction.
func (tr *Transaction) IsReadOnly() bool { return tr.ReadOnly }

// mark adds a point and returns its number.
func (tr *Transaction) mark(name string) int {
	tr.serial++
	tr.points = append(tr.points, point{name: name, serial: tr.serial, mark: tr.Tx.Mark()})
	return tr.serial
}

// rollback returns to a point, and removes those after it; the point stays. If an earlier
// rollback has removed the point, there is nothing to do.
func (tr *Transaction) rollback(serial int) {
	for i := range tr.points {
		if tr.points[i].serial == serial {
			tr.Tx.Rollback(tr.points[i].mark)
			tr.points = tr.points[:i+1]
			return
		}
	}
}

// forget removes a point, and keeps the changes made since.
func (tr *Transaction) forget(serial int) {
	for i := range tr.points {
		if tr.points[i].serial == serial {
			tr.points = append(tr.points[:i], tr.points[i+1:]...)
			return
		}
	}
}

func (tr *Transaction) savepoint(name string) (serial int, ok bool) {
	for i := len(tr.points) - 1; i >= 0; i-- {
		if tr.points[i].name != "" && strings.EqualFold(tr.points[i].name, name) {
			return tr.points[i].serial, true
		}
	}
	return 0, false
}

// count notes that a table has gained n rows. A rollback to an earlier point takes that back.
func (tr *Transaction) count(counter region.Ptr, n int64) {
	if tr.rows == nil {
		tr.rows = make(map[region.Ptr]int64)
	}
	tr.rows[counter] += n
	tr.Tx.OnRollback(func() { tr.rows[counter] -= n })
}

// Current returns the context's transaction, and makes the context bound its waits; nil if there is none.
func Current(ctx *gms.Context) *Transaction {
	tr, _ := ctx.GetTransaction().(*Transaction)
	if tr != nil {
		tr.Tx.Within(ctx.Context)
	}
	return tr
}

// CurrentOf is like Current, for a context that may have no session, or a session of
// go-mysql-server's.
func CurrentOf(ctx *gms.Context) *Transaction {
	if ctx == nil || ctx.Session == nil {
		return nil
	}
	return Current(ctx)
}

// Began returns the context's transaction, and begins one if go-mysql-server has not.
func Began(ctx *gms.Context) *Transaction {
	if tr := Current(ctx); tr != nil {
		return tr
	}
	return FromContext(ctx).Began(ctx)
}

// commit commits, unless the running statement has failed. go-mysql-server commits even if a
// statement has failed while its rows were read; the context has then ended with the
// statement's error as its cause. That error may be a consequence of reads that no longer
// hold. So commit validates them while the transaction is still open, and returns a conflict
// if they do not.
func (tr *Transaction) commit(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return tr.Tx.Commit(ctx)
	}
	tr.Tx.Within(context.WithoutCancel(ctx))
	if err := tr.Tx.Validate(); err != nil {
		return err
	}
	return ctx.Err()
}

func (tr *Transaction) abort() {
	tr.Tx.Abort()
	tr.Ended = true
}

// Fail passes on an error that has interrupted a change of the catalog, and marks the
// transaction as broken: go-mysql-server would commit what was done before the error.
func (tr *Transaction) Fail(err error) error {
	if err != nil {
		tr.broken = true
	}
	return myerr.Storage(err)
}
