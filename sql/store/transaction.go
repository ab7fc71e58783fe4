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

// A Transaction is what go-mysql-server calls so: a FaRM transaction and what
// this package remembers about it.
type Transaction struct {
	// Tx is the FaRM transaction.
	Tx *txn.Tx
	// ReadOnly says that the transaction may change nothing (START TRANSACTION READ ONLY).
	ReadOnly bool
	// Ended says that the transaction is over, whatever the outcome.
	Ended bool
	// ddl says that the statement at work changes the catalog.
	ddl bool
	// After is called when the commit of the transaction has been tried, nil if nobody asks.
	After func()
	// broken says that a change of the catalog has failed half way. Nothing of
	// the transaction may be committed.
	broken bool
	// points are the places that a statement or savepoint can return to, oldest
	// first, and serial numbers them.
	points []point
	serial int
	// Editing counts the editors that have begun a statement and not ended it.
	Editing int
	// DB is the database that was last asked for, by whoever knows the databases:
	// statements ask for one again and again.
	DB gms.Database
	// rows are the changes of row counts, by the table's counter.
	rows map[region.Ptr]int64
	// born are the sequences that the transaction has created.
	born map[region.Ptr]bool
	// strays are the addresses of rows without a key of their own that the
	// present statement has read, by their contents.
	strays map[string][]region.Ptr
	// moved says where rows went that the transaction has moved or deleted.
	moved map[region.Ptr]region.Ptr
	// turns are those that the transaction has, and waitsFor is the one that it waits
	// for, both guarded by the engine's turns; takesTurns says that it has had to do
	// with any.
	turns      []*turn
	waitsFor   *turn
	takesTurns bool
	// opened is when the transaction began, if it is the client's to end.
	opened time.Time
}

// A point is a mark in the transaction. A statement's has no name.
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

// rollback returns to a point and forgets those after it; the point stays. One
// that is gone already, because an older one was returned to, is no news.
func (tr *Transaction) rollback(serial int) {
	for i := range tr.points {
		if tr.points[i].serial == serial {
			tr.Tx.Rollback(tr.points[i].mark)
			tr.points = tr.points[:i+1]
			return
		}
	}
}

// forget drops a point, keeping what was done since.
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

// count notes that a table has n rows more, unless that is rolled back.
func (tr *Transaction) count(counter region.Ptr, n int64) {
	if tr.rows == nil {
		tr.rows = make(map[region.Ptr]int64)
	}
	tr.rows[counter] += n
	tr.Tx.OnRollback(func() { tr.rows[counter] -= n })
}

// Current returns the context's transaction.
func Current(ctx *gms.Context) *Transaction {
	tr, _ := ctx.GetTransaction().(*Transaction)
	if tr != nil {
		tr.Tx.Within(ctx.Context)
	}
	return tr
}

// CurrentOf is current for a context that may have no session, or none of ours.
func CurrentOf(ctx *gms.Context) *Transaction {
	if ctx == nil || ctx.Session == nil {
		return nil
	}
	return Current(ctx)
}

// Began returns the context's transaction, and begins one where go-mysql-server
// has not.
func Began(ctx *gms.Context) *Transaction {
	if tr := Current(ctx); tr != nil {
		return tr
	}
	return FromContext(ctx).Began(ctx)
}

// commit commits, unless the statement at work has failed. After one that returns rows
// go-mysql-server commits all the same, within a context that the failure has ended. What
// the statement failed with may come of reads that do not hold: that has to be known
// before the transaction is over, and is a conflict then.
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

// Fail passes on an error that has interrupted a change of the catalog.
// go-mysql-server commits what was done before it, if it can.
func (tr *Transaction) Fail(err error) error {
	if err != nil {
		tr.broken = true
	}
	return myerr.Storage(err)
}
