package routine

import (
	"context"
	"errors"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// This file runs the statements of a stored procedure by their syntax tree. The interpreter of
// go-mysql-server is not used: it starts the procedure again, for ever, when a handler returns
// rows or SELECT ... INTO finds none; it runs only the first statement of a handler's block;
// and it picks the outermost handler for every error.

// A body is a running stored procedure. The contexts of its statements lead to it.
type body struct {
	ctx    *gms.Context
	runner *Runner
	// within is the parent of the contexts of the body's statements. It holds the body, so that the
	// statements find it.
	within context.Context
	// depth is the number of bodies that are running: this one, the one that has called it, ...
	depth int
	// scopes are those of the running blocks, the innermost last. The first has the parameters.
	scopes []*scope
	// raised are the errors whose handlers are running, the innermost last.
	raised []*mysql.SQLError
	// schema and rows are the result of the last SELECT or, if there was none, of the last
	// statement that had a result.
	schema   gms.Schema
	rows     []gms.Row
	selected bool
	// returned are the values of the OUT and INOUT parameters of the body's last CALL, by
	// parameter.
	returned map[int]any
}

// bodyKey is the key of the innermost running body in a context.
type bodyKey struct{}

// running returns the body that a context's statement belongs to, nil if it belongs to none.
func running(ctx context.Context) *body {
	b, _ := ctx.Value(bodyKey{}).(*body)
	return b
}

// IsRunning reports whether a context's statement belongs to a stored procedure.
func IsRunning(ctx context.Context) bool { return running(ctx) != nil }

// newBody returns a body that CALL, the statement of ctx, runs with these parameters.
func newBody(ctx *gms.Context, r *Runner, parameters *scope) *body {
	b := &body{ctx: ctx, runner: r, depth: 1, scopes: []*scope{parameters}}
	if caller := running(ctx); caller != nil {
		b.depth = caller.depth + 1
	}
	b.within = context.WithValue(ctx.Context, bodyKey{}, b)
	return b
}

// Statements return these as errors to say how the body goes on; they are not failures.
type (
	// A jump is LEAVE, or ITERATE, which continues the loop (again).
	jump struct {
		label string
		again bool
	}
	// An exit leaves a block after one of its EXIT handlers.
	exit struct{ scope *scope }
	// An unhandled error is one that no handler covers.
	unhandled struct{ error }
)

func (jump) Error() string        { return "LEAVE or ITERATE with no matching label" }
func (exit) Error() string        { return "an EXIT handler has run" }
func (u unhandled) Unwrap() error { return u.error }

// run executes the body.
func (b *body) run(s sqlparser.Statement) error {
	err := b.statement(s)
	var u unhandled
	if errors.As(err, &u) {
		return u.error
	}
	return err
}

func (b *body) statements(all sqlparser.Statements) error {
	for _, s := range all {
		if err := b.statement(s); err != nil {
			return err
		}
	}
	return nil
}

// statement executes one statement and, if it fails, the handler for its error.
func (b *body) statement(s sqlparser.Statement) error {
	if err := b.ctx.Err(); err != nil {
		return unhandled{err}
	}
	warnings := b.ctx.Session.WarningCount()
	err := b.execute(s)
	switch err.(type) {
	case jump, exit, unhandled:
		return err
	case nil:
		return b.warned(s, warnings)
	}
	return b.handle(s, err)
}

// execute runs one statement by its kind. It does not handle the statement's error.
func (b *body) execute(s sqlparser.Statement) error {
	switch s := s.(type) {
	case *sqlparser.BeginEndBlock:
		return b.block(s)
	case *sqlparser.Declare:
		return b.declare(s)
	case *sqlparser.IfStatement:
		return b.branch(s)
	case *sqlparser.CaseStatement:
		return b.choose(s)
	case *sqlparser.While:
		return b.loop(s.Label, s.Statements, s.Condition, nil)
	case *sqlparser.Repeat:
		return b.loop(s.Label, s.Statements, nil, s.Condition)
	case *sqlparser.Loop:
		return b.loop(s.Label, s.Statements, nil, nil)
	case *sqlparser.Leave:
		return jump{label: s.Label}
	case *sqlparser.Iterate:
		return jump{label: s.Label, again: true}
	case *sqlparser.Signal:
		return b.signal(s, nil)
	case *sqlparser.Resignal:
		return b.resignal(s)
	case *sqlparser.OpenCursor:
		return b.open(s)
	case *sqlparser.FetchCursor:
		return b.fetch(s)
	case *sqlparser.CloseCursor:
		return b.close(s)
	case *sqlparser.Set:
		return b.set(s)
	case *sqlparser.Call:
		return b.call(s)
	case sqlparser.SelectStatement:
		return b.selectRows(s)
	}
	schema, rows, err := b.query(s)
	if err == nil && (!b.selected || hasRows(schema, rows)) {
		b.schema, b.rows, b.selected = schema, rows, hasRows(schema, rows)
	}
	return err
}

// hasRows reports whether a statement has a result, like SHOW and an EXECUTE of a SELECT, and not
// only a number of rows that it has changed.
func hasRows(schema gms.Schema, rows []gms.Row) bool {
	if len(schema) == 0 || types.IsOkResultSchema(schema) {
		return false
	}
	return len(rows) == 0 || !types.IsOkResult(rows[0])
}

// block runs BEGIN ... END in a scope of its own.
func (b *body) block(s *sqlparser.BeginEndBlock) error {
	b.scopes = append(b.scopes, newScope())
	scope := b.scopes[len(b.scopes)-1]
	err := b.statements(s.Statements)
	b.scopes = b.scopes[:len(b.scopes)-1]
	if e, ok := err.(exit); (ok && e.scope == scope) || isJump(err, s.Label, false) {
		return nil
	}
	return err
}

// isJump reports whether err leaves the statement with this label (LEAVE) or, if iterate is set,
// continues it (ITERATE).
func isJump(err error, label string, iterate bool) bool {
	j, ok := err.(jump)
	return ok && label != "" && j.again == iterate && strings.EqualFold(j.label, label)
}

// loop executes statements again and again. It ends when while is false before a round, or when until
// is true after one. A condition that is nil does not end the loop.
func (b *body) loop(label string, all sqlparser.Statements, while, until sqlparser.Expr) error {
	for {
		if err := b.ctx.Err(); err != nil {
			return unhandled{err}
		}
		if while != nil {
			if holds, err := b.holds(while); err != nil || !holds {
				return err
			}
		}
		switch err := b.statements(all); {
		case isJump(err, label, false):
			return nil
		case err != nil && !isJump(err, label, true):
			return err
		}
		if until != nil {
			if holds, err := b.holds(until); err != nil || holds {
				return err
			}
		}
	}
}

func (b *body) branch(s *sqlparser.IfStatement) error {
	for _, c := range s.Conditions {
		holds, err := b.holds(c.Expr)
		if err != nil {
			return err
		}
		if holds {
			return b.statements(c.Statements)
		}
	}
	return b.statements(s.Else)
}

// choose executes the first part of a CASE statement that holds, or ELSE. Without ELSE one must hold.
func (b *body) choose(s *sqlparser.CaseStatement) error {
	for _, c := range s.Cases {
		when := c.Case
		if s.Expr != nil {
			when = &sqlparser.ComparisonExpr{Operator: sqlparser.EqualStr, Left: s.Expr, Right: c.Case}
		}
		holds, err := b.holds(when)
		if err != nil {
			return err
		}
		if holds {
			return b.statements(c.Statements)
		}
	}
	if s.Else == nil {
		return myerr.CaseNotFound.New()
	}
	return b.statements(s.Else)
}

// holds evaluates a condition; NULL does not hold.
func (b *body) holds(e sqlparser.Expr) (bool, error) {
	v, _, err := b.value(e)
	if err != nil || v == nil {
		return false, err
	}
	return gms.ConvertToBool(b.ctx, v)
}

// value evaluates an expression.
func (b *body) value(e sqlparser.Expr) (any, gms.Type, error) {
	schema, rows, err := b.query(&sqlparser.Select{SelectExprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: e}}})
	if err != nil {
		return nil, nil, err
	}
	v, err := gms.UnwrapAny(b.ctx, rows[0][0])
	return v, schema[0].Type, err
}

// query executes a statement after replacing variables by their values.
func (b *body) query(s sqlparser.Statement) (gms.Schema, []gms.Row, error) {
	restore, err := b.putValues(s)
	defer restore()
	if err != nil {
		return nil, nil, err
	}
	return b.runner.run(b.within, b.ctx.Session, s)
}

// set executes a SET of one variable: the parser has split SETs of several.
func (b *body) set(s *sqlparser.Set) error {
	e := s.Exprs[0]
	v := b.variable(e.Name.Name.String())
	if e.Scope != "" || v == nil {
		_, _, err := b.query(s)
		return err
	}
	value, _, err := b.value(e.Expr)
	if err != nil {
		return err
	}
	return v.set(b.ctx, value)
}

// selectRows executes a SELECT. Without INTO, its rows are the result of the body so far.
func (b *body) selectRows(s sqlparser.SelectStatement) error {
	at := intoOf(s)
	if at == nil || *at == nil || len((*at).Variables) == 0 {
		schema, rows, err := b.query(s)
		if err == nil {
			b.schema, b.rows, b.selected = schema, rows, true
		}
		return err
	}
	into := *at
	*at = nil // the engine does not know the body's variables
	schema, rows, err := b.query(s)
	*at = into
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return mild{myerr.NoData.New()}
	case len(rows) > 1:
		return myerr.TooManyRows.New()
	}
	names := make([]string, len(into.Variables))
	for i, v := range into.Variables {
		names[i] = v.String()
	}
	return b.assign(names, schema, rows[0], myerr.ColumnCount.New())
}

// intoOf returns the place of a SELECT's INTO.
func intoOf(s sqlparser.SelectStatement) **sqlparser.Into {
	switch s := s.(type) {
	case *sqlparser.Select:
		return &s.Into
	case *sqlparser.SetOp:
		return &s.Into
	}
	return nil
}

// assign assigns a row to variables. It returns mismatch if their numbers differ.
func (b *body) assign(names []string, schema gms.Schema, row gms.Row, mismatch error) error {
	if len(names) != len(row) {
		return mismatch
	}
	for i, name := range names {
		value, err := gms.UnwrapAny(b.ctx, row[i])
		if err != nil {
			return err
		}
		if user, ok := strings.CutPrefix(name, "@"); ok {
			err = b.ctx.SetUserVariable(b.ctx, strings.ToLower(user), value, schema[i].Type)
		} else if v := b.variable(name); v != nil {
			err = v.set(b.ctx, value)
		} else {
			err = myerr.UndeclaredVariable.New(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call executes CALL, and assigns the OUT and INOUT values of the called procedure to this
// body's variables.
func (b *body) call(s *sqlparser.Call) error {
	if s.ProcName.Qualifier.IsEmpty() {
		s.ProcName.Qualifier = sqlparser.NewTableIdent(b.ctx.GetCurrentDatabase())
	}
	b.returned = nil
	schema, rows, err := b.query(s)
	if err != nil {
		return err
	}
	if hasRows(schema, rows) {
		b.schema, b.rows, b.selected = schema, rows, true
	}
	for i, p := range s.Params {
		c, isName := p.(*sqlparser.ColName)
		value, isReturned := b.returned[i]
		if !isName || !isReturned {
			continue
		}
		if v := b.variable(c.Name.String()); v != nil {
			if err := v.set(b.ctx, value); err != nil {
				return err
			}
		}
	}
	return nil
}
