package sql

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// This file calls stored procedures. go-mysql-server executes the statements of a body as if a
// client had sent them, and puts the session's transaction aside meanwhile. This file runs
// them in the session's transaction if the client has opened it, or if a trigger has called
// the procedure; otherwise each statement is a transaction of its own, as in MySQL.

// callsMax bounds the depth of calls of procedures, as the greatest value of MySQL's
// max_sp_recursion_depth does. Go's stack would hold some thousands.
const callsMax = 255

// call executes CALL.
func (b *builder) call(ctx *gms.Context, s *Session, n *plan.Call, row gms.Row) (gms.RowIter, error) {
	if n.Procedure.ExternalProc != nil {
		return b.ordinary(ctx, s, n, row)
	}
	if n.AsOf() != nil {
		return nil, myerr.NotSupported("'CALL ... AS OF'")
	}
	if s.calls == callsMax {
		return nil, myerr.ProcedureRecursion.New(callsMax, n.Name)
	}
	parameters, err := parametersOf(ctx, n, row)
	if err != nil {
		return nil, err
	}
	spec, err := b.e.specOf(ctx, n)
	if err != nil {
		return nil, err
	}
	restore, err := b.e.become(s, spec)
	if err != nil {
		return nil, err
	}
	defer restore()
	defer b.enter(ctx, s, n)()
	p := &body{ctx: ctx, runner: &bodyRunner{b.e, s}, scopes: []*bodyScope{parameters}}
	if err := p.run(spec.Body); err != nil {
		return nil, err
	}
	if err := s.giveBack(ctx, n, parameters); err != nil {
		return nil, err
	}
	if p.schema == nil {
		p.schema, p.rows = types.OkResultSchema, []gms.Row{gms.NewRow(types.NewOkResult(0))}
	}
	n.SetSchema(p.schema)
	return gms.RowsToRowIter(p.rows...), nil
}

// enter makes the procedure's database the session's, and starts a body (enterBody), until
// leave is called.
func (b *builder) enter(ctx *gms.Context, s *Session, n *plan.Call) (leave func()) {
	database, leaveBody := s.GetCurrentDatabase(), s.enterBody(ctx)
	s.SetCurrentDatabase(n.Database().Name())
	return func() {
		s.SetCurrentDatabase(database)
		leaveBody()
	}
}

// enterBody makes the statements that run until leave is called part of the session's
// transaction, if they belong to it.
func (s *Session) enterBody(ctx *gms.Context) (leave func()) {
	outer, tr := s.Body, store.Current(ctx)
	if tr != nil && (s.Explicit() || tr.Editing > 0 || tr == outer) {
		s.Body = tr
	} else {
		s.Body = nil
		s.Abandon() // the statements do not belong to the open transaction: it is aborted, not put aside
	}
	s.calls++
	open := ctx.GetTransaction()
	ctx.SetTransaction(nil)
	return func() {
		ctx.SetTransaction(open)
		s.calls, s.Body = s.calls-1, outer
	}
}

// specOf parses the procedure that is called.
func (e *Engine) specOf(ctx *gms.Context, n *plan.Call) (*sqlparser.ProcedureSpec, error) {
	d, ok := n.Database().(gms.StoredProcedureDatabase)
	if !ok {
		return nil, gms.ErrStoredProceduresNotSupported.New(n.Database().Name())
	}
	v, ok, err := d.GetStoredProcedure(ctx, n.Name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, gms.ErrStoredProcedureDoesNotExist.New(n.Database().Name() + "." + n.Name)
	}
	return e.procedureOf(ctx, v.CreateStatement, v.SqlMode)
}

// parametersOf evaluates the parameters of CALL.
func parametersOf(ctx *gms.Context, n *plan.Call, row gms.Row) (*bodyScope, error) {
	scope := newBodyScope()
	for i, p := range n.Procedure.Params {
		v := &bodyVariable{typ: p.Type}
		scope.variables[p.Name] = v
		if p.Direction == plan.ProcedureParamDirection_Out {
			continue
		}
		value, err := n.Params[i].Eval(ctx, row)
		if err == nil {
			err = v.set(ctx, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return scope, nil
}

// giveBack assigns the values of OUT and INOUT parameters to the client's variables. Values
// for variables of a calling body are kept until it calls takeReturned.
func (s *Session) giveBack(ctx *gms.Context, n *plan.Call, parameters *bodyScope) (err error) {
	s.returned = make(map[int]any)
	for i, p := range n.Procedure.Params {
		if p.Direction == plan.ProcedureParamDirection_In {
			continue
		}
		v := parameters.variables[p.Name]
		s.returned[i] = v.value
		switch to := n.Params[i].(type) {
		case *expression.ProcedureParam: // a parameter of the trigger that calls the procedure
			err = to.Set(ctx, v.value, v.typ)
		case *expression.UserVar:
			err = ctx.SetUserVariable(ctx, to.Name, v.value, v.typ)
		case *expression.SystemVar:
			err = myerr.OutNoVariable.New(i+1, n.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeReturned returns the values that the last CALL has kept for its caller, by parameter.
func (s *Session) takeReturned() map[int]any {
	all := s.returned
	s.returned = nil
	return all
}

// A bodyRunner runs the statements of a body. Their rows are read to the end at
// once: the transaction that a cursor was opened in may have ended before the
// cursor is read.
type bodyRunner struct {
	e *Engine
	s *Session
}

// bodyRetriesMax bounds how often a statement with its own transaction is retried after a
// conflict. The client cannot retry it: the statements before it have committed.
const bodyRetriesMax = 100

// run executes a statement.
func (r *bodyRunner) run(ctx *gms.Context, s sqlparser.Statement) (gms.Schema, []gms.Row, error) {
	if err := ctx.Err(); err != nil { // a loop runs as long as its statements do
		return nil, nil, err
	}
	for attempt := 0; ; attempt++ {
		joined := r.s.Body != nil || r.s.Explicit()
		schema, rows, err := r.attempt(ctx, s, joined)
		switch {
		case err == nil:
			return schema, rows, nil
		case joined || !myerr.IsConflict(err):
			return nil, nil, err
		case attempt == bodyRetriesMax:
			return nil, nil, myerr.LockWaitTimeout.New()
		}
		bound := time.Duration(min(attempt+1, 100)) * 100 * time.Microsecond
		clock := r.e.Store.Machine.Clock()
		clock.Sleep(time.Duration(clock.Uint64() % uint64(bound)))
	}
}

// attempt runs a statement once.
func (r *bodyRunner) attempt(ctx *gms.Context, stmt sqlparser.Statement, joined bool) (gms.Schema, []gms.Row, error) {
	failed := func(err error) error {
		if joined {
			return err
		}
		if lost := r.s.Failed(); lost != nil {
			return lost
		}
		return err
	}
	_ = r.s.TakeCommitError() // drop the error of the statement before
	r.s.bodyStatements++
	defer func(outer sqlparser.Statement) { r.s.Running = outer }(r.s.Running)
	r.s.Running = stmt
	schema, iter, _, err := r.e.gms.QueryWithBindings(ctx, "", stmt, nil, nil)
	if err != nil {
		return nil, nil, failed(err)
	}
	rows, err := r.s.Holding.ReadAll(ctx, iter)
	if err != nil {
		err = failed(err)
		_ = iter.Close(ctx) // the error of the rows is known already
		return nil, nil, err
	}
	if err = iter.Close(ctx); err == nil && !joined {
		err = r.s.TakeCommitError()
	}
	return schema, rows, err
}
