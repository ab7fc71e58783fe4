package sql

import (
	"io"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// This file runs the bodies of stored procedures. go-mysql-server executes the
// statements of a body as if a client had sent them, and puts the session's
// transaction aside meanwhile. Here they belong to it nevertheless if the client
// has opened it, or if a trigger has called the procedure; otherwise each is a
// transaction of its own, as in MySQL.

var _ gms.StatementRunner = (*bodyRunner)(nil)

// callsMax bounds how deep procedures may call each other and themselves, as MySQL's
// max_sp_recursion_depth does at its greatest; Go's stack would have room for some thousands.
const callsMax = 255

// erProcedureRecursion is MySQL's number for what is deeper.
const erProcedureRecursion = 1456

// call executes CALL.
func (b *builder) call(ctx *gms.Context, s *Session, n *plan.Call, row gms.Row) (gms.RowIter, error) {
	if s.calls == callsMax {
		return nil, mysql.NewSQLError(erProcedureRecursion, mysql.SSUnknownSQLState, "Recursive limit %d was exceeded for routine %s", callsMax, n.Name)
	}
	s.calls++
	outer := s.body
	defer func() { s.calls, s.body = s.calls-1, outer }()
	tr := current(ctx)
	if tr != nil && (s.Explicit() || tr.editing > 0 || tr == outer) {
		s.body = tr
	} else {
		s.body = nil
		s.abandon() // go-mysql-server puts it aside, and it does not come back
	}
	n.Runner = &bodyRunner{b.e, s}
	return b.ordinary(ctx, s, n, row)
}

// A bodyRunner runs the statements of a body. Their rows are read to the end at
// once: the transaction that a cursor was opened in may have ended before the
// cursor is read.
type bodyRunner struct {
	e *Engine
	s *Session
}

// bodyRetriesMax bounds how often a statement with a transaction of its own is
// run again after a conflict. The statements before it have been committed, so
// that nobody else can.
const bodyRetriesMax = 100

// QueryWithBindings implements gms.StatementRunner.
func (r *bodyRunner) QueryWithBindings(ctx *gms.Context, query string, parsed sqlparser.Statement, bindings map[string]sqlparser.Expr, flags *gms.QueryFlags) (gms.Schema, gms.RowIter, *gms.QueryFlags, error) {
	for attempt := 0; ; attempt++ {
		joined := r.s.body != nil || r.s.Explicit()
		schema, rows, f, err := r.attempt(ctx, query, parsed, bindings, flags, joined)
		switch {
		case err == nil:
			return schema, gms.RowsToRowIter(rows...), f, nil
		case joined || !IsConflict(err):
			return nil, nil, nil, err
		case attempt == bodyRetriesMax:
			return nil, nil, nil, mysql.NewSQLError(erLockWaitTimeout, "HY000", "Lock wait timeout exceeded; try restarting transaction")
		}
		bound := time.Duration(min(attempt+1, 100)) * 100 * time.Microsecond
		clock := r.e.m.Clock()
		clock.Sleep(time.Duration(clock.Uint64() % uint64(bound)))
	}
}

// attempt runs a statement once.
func (r *bodyRunner) attempt(ctx *gms.Context, query string, parsed sqlparser.Statement, bindings map[string]sqlparser.Expr, flags *gms.QueryFlags, joined bool) (gms.Schema, []gms.Row, *gms.QueryFlags, error) {
	failed := func(err error) error {
		if joined {
			return err
		}
		if lost := r.s.Failed(); lost != nil {
			return lost
		}
		return err
	}
	_ = r.s.TakeCommitError() // of the statement before
	r.s.bodyStatements++
	schema, iter, f, err := r.e.gms.QueryWithBindings(ctx, query, parsed, bindings, flags)
	if err != nil {
		return nil, nil, nil, failed(err)
	}
	var rows []gms.Row
	for {
		row, err := iter.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			err = failed(err)
			_ = iter.Close(ctx) // what it would report has just been found out
			return nil, nil, nil, err
		}
		rows = append(rows, row)
	}
	if err = iter.Close(ctx); err == nil && !joined {
		err = r.s.TakeCommitError()
	}
	return schema, rows, f, err
}
