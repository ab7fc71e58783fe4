package routine

import (
	"context"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// A Query plans a statement that is part of another one, and begins to execute it.
type Query func(ctx *gms.Context, stmt sqlparser.Statement) (gms.Schema, gms.RowIter, error)

// A Runner runs the stored procedures of an engine. It is safe for concurrent use; a session
// runs one statement at a time.
type Runner struct {
	gms         *sqle.Engine
	query       Query
	hasAccounts bool
}

// NewRunner returns the Runner of an engine, which parses definitions and has the accounts. Query
// runs its statements. Without hasAccounts definitions do not get the client's account as definer:
// go-mysql-server's own tests enable accounts that nothing stores.
func NewRunner(engine *sqle.Engine, query Query, hasAccounts bool) *Runner {
	return &Runner{engine, query, hasAccounts}
}

// retriesMax bounds how often a statement with its own transaction is retried after a
// conflict. The client cannot retry it: the statements before it have committed.
const retriesMax = 100

// Run executes a statement that is part of the context's statement. It reads the rows to the end:
// the transaction may have ended before the caller uses them.
func (r *Runner) Run(ctx *gms.Context, stmt sqlparser.Statement) (gms.Schema, []gms.Row, error) {
	return r.run(ctx.Context, ctx.Session, stmt)
}

// run executes a statement of a session. The statement has a context of its own below parent,
// and so its own NOW().
func (r *Runner) run(parent context.Context, session gms.Session, stmt sqlparser.Statement) (gms.Schema, []gms.Row, error) {
	ctx := gms.NewContext(store.WithStatement(parent, stmt), gms.WithSession(session))
	s := store.FromContext(ctx)
	s.Begun(ctx)
	if err := ctx.Err(); err != nil { // a loop runs as long as its statements do
		return nil, nil, err
	}
	for attempt := 0; ; attempt++ {
		joined := s.Body != nil || s.Explicit()
		schema, rows, err := r.attempt(ctx, s, stmt, joined)
		switch {
		case err == nil:
			return schema, rows, nil
		case joined || !myerr.IsConflict(err):
			return nil, nil, err
		case attempt == retriesMax:
			return nil, nil, myerr.LockWaitTimeout.New()
		}
		// Wait for a random time, which grows with each attempt, so that rivals do not meet again.
		bound := time.Duration(min(attempt+1, 100)) * 100 * time.Microsecond
		clock := s.Store.Machine.Clock()
		clock.Sleep(time.Duration(clock.Uint64() % uint64(bound)))
	}
}

// attempt runs a statement once. If joined is set, the statement belongs to the session's
// transaction; otherwise it has its own, which ends with it.
func (r *Runner) attempt(ctx *gms.Context, s *store.Session, stmt sqlparser.Statement, joined bool) (gms.Schema, []gms.Row, error) {
	failed := func(err error) error {
		if joined {
			return err
		}
		if lost := s.Failed(); lost != nil {
			return lost
		}
		return err
	}
	_ = s.TakeCommitError() // drop the error of the statement before
	schema, iter, err := r.query(ctx, stmt)
	if err != nil {
		return nil, nil, failed(err)
	}
	rows, err := s.Holding.ReadAll(ctx, iter)
	if err != nil {
		err = failed(err)
		_ = iter.Close(ctx) // the error of the rows is known already
		return nil, nil, err
	}
	if err = iter.Close(ctx); err == nil && !joined {
		err = s.TakeCommitError()
	}
	return schema, rows, err
}
