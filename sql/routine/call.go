package routine

import (
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

// Call executes CALL of a procedure that has a body.
func (r *Runner) Call(ctx *gms.Context, n *plan.Call, row gms.Row) (gms.RowIter, error) {
	if n.AsOf() != nil {
		return nil, myerr.NotSupported("'CALL ... AS OF'")
	}
	caller := running(ctx)
	if caller != nil && caller.depth == callsMax {
		return nil, myerr.ProcedureRecursion.New(callsMax, n.Name)
	}
	parameters, err := parametersOf(ctx, n, row)
	if err != nil {
		return nil, err
	}
	spec, err := r.specOf(ctx, n)
	if err != nil {
		return nil, err
	}
	restore, err := r.become(ctx.Session, spec)
	if err != nil {
		return nil, err
	}
	defer restore()
	defer enterBody(ctx, n)()
	b := newBody(ctx, r, parameters)
	if err := b.run(spec.Body); err != nil {
		return nil, err
	}
	returned, err := giveBack(ctx, n, parameters)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		caller.returned = returned
	}
	if b.schema == nil {
		b.schema, b.rows = types.OkResultSchema, []gms.Row{gms.NewRow(types.NewOkResult(0))}
	}
	n.SetSchema(b.schema)
	return gms.RowsToRowIter(b.rows...), nil
}

// enterBody makes the procedure's database the session's, and calls Enter, until leave is
// called.
func enterBody(ctx *gms.Context, n *plan.Call) (leave func()) {
	database, leaveTransaction := ctx.GetCurrentDatabase(), Enter(ctx)
	ctx.SetCurrentDatabase(n.Database().Name())
	return func() {
		ctx.SetCurrentDatabase(database)
		leaveTransaction()
	}
}

// Enter makes the statements that run until leave is called part of the session's
// transaction, if they belong to it: if the client has opened it, if an editor is within a statement, whose trigger
// runs them, or if the statements around them belong to it. Otherwise each has its own transaction.
func Enter(ctx *gms.Context) (leave func()) {
	s := store.FromContext(ctx)
	outer, tr := s.Body, store.Current(ctx)
	belongs := tr != nil && (s.Explicit() || tr.Editing > 0 || tr == outer)
	if belongs {
		s.Body = tr
	} else {
		s.Body = nil
		s.Abandon() // the statements do not belong to the open transaction: it is aborted, not put aside
	}
	open := ctx.GetTransaction()
	ctx.SetTransaction(nil)
	return func() {
		ctx.SetTransaction(open)
		s.Body = outer
	}
}

// specOf parses the procedure that is called.
func (r *Runner) specOf(ctx *gms.Context, n *plan.Call) (*sqlparser.ProcedureSpec, error) {
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
	return r.parse(ctx, v.CreateStatement, v.SqlMode)
}

// parametersOf evaluates the parameters of CALL.
func parametersOf(ctx *gms.Context, n *plan.Call, row gms.Row) (*scope, error) {
	parameters := newScope()
	for i, p := range n.Procedure.Params {
		v := &variable{typ: p.Type}
		parameters.variables[p.Name] = v
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
	return parameters, nil
}

// giveBack assigns the values of OUT and INOUT parameters to the client's variables. It returns
// all these values, by parameter: some may be for variables of the calling body, which assigns
// them itself.
func giveBack(ctx *gms.Context, n *plan.Call, parameters *scope) (returned map[int]any, err error) {
	returned = make(map[int]any)
	for i, p := range n.Procedure.Params {
		if p.Direction == plan.ProcedureParamDirection_In {
			continue
		}
		v := parameters.variables[p.Name]
		returned[i] = v.value
		switch to := n.Params[i].(type) {
		case *expression.ProcedureParam: // a parameter of the trigger that calls the procedure
			err = to.Set(ctx, v.value, v.typ)
		case *expression.UserVar:
			err = ctx.SetUserVariable(ctx, to.Name, v.value, v.typ)
		case *expression.SystemVar:
			err = myerr.OutNoVariable.New(i+1, n.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return returned, nil
}
