package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/rowexec"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/plan"
)

// buildInsert makes the query of an INSERT: go-mysql-server analyzes it with parameters in place of
// its values. The first of the statement's tables is the one that it inserts into, and the others are those of its SELECT.
func (p *prepared) buildInsert(ctx *gms.Context, s *Statement, ast sqlparser.Statement, values []plan.Value) (*plan.Query, error) {
	var source *plan.Query
	if s.literals.IsSource {
		var err error
		if source, err = p.buildSource(ctx, s, values); err != nil {
			return nil, err
		}
	}
	bound, ok := plan.Parameters(ctx, p.parameters, values)
	if !ok {
		return nil, ErrPlan
	}
	if source != nil {
		withoutLimits(ast)
	}
	plan.Negate(ast)
	b := planbuilder.New(ctx, s.gms.Analyzer.Catalog, s.gms.EventScheduler)
	b.SetBindingsWithExpr(bound)
	warnings := ctx.WarningCount()
	root, flags, err := b.BindOnly(ast, p.text, nil)
	if err != nil {
		return nil, ErrPlan
	}
	if root, err = s.gms.Analyzer.Analyze(ctx, root, nil, flags); err != nil || ctx.WarningCount() != warnings {
		return nil, ErrPlan
	}
	return plan.BuildInsert(ctx, root, p.tables[0], source)
}

// buildSource makes the query of the SELECT whose rows an INSERT takes.
func (p *prepared) buildSource(ctx *gms.Context, s *Statement, values []plan.Value) (*plan.Query, error) {
	ast, err := s.parse(ctx, p.text)
	if err != nil {
		return nil, ErrPlan
	}
	source, ok := ast.(*sqlparser.Insert).Rows.(sqlparser.SelectStatement)
	if !ok {
		return nil, ErrPlan
	}
	return p.query(ctx, s, source, p.tables[1:], values)
}

// withoutLimits removes the LIMITs from a statement. go-mysql-server accepts no parameters in a
// LIMIT, and needs only the columns of the SELECT.
func withoutLimits(ast sqlparser.Statement) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Select:
			n.Limit = nil
		case *sqlparser.SetOp:
			n.Limit = nil
		}
		return true, nil
	}, ast)
}

// insert runs an INSERT. go-mysql-server inserts the rows, and reports the errors and warnings.
func (s *Statement) insert(ctx *gms.Context, r *run) (*Result, error) {
	in := r.query.Insert
	if !in.Bind(ctx, r.values) {
		return nil, ErrPlan
	}
	if !in.Begin(ctx, r.s) {
		s.forget()
		return nil, ErrPlan
	}
	r.s.ClearWarnings()
	if in.Source != nil {
		defer func() {
			in.Rows.Rows = nil
			r.s.Holding.Give(r.taken)
		}()
		if err := r.readSource(ctx, in); err != nil {
			return nil, err
		}
	}
	res := &Result{Planned: true}
	rows, err := s.gms.Analyzer.ExecBuilder.Build(ctx, in.Node, nil)
	if err != nil {
		return res, err
	}
	rows, _ = rowexec.AddAccumulatorIter(ctx, rows)
	row, err := rows.Next(ctx) // also closes rows
	if err != nil {
		return res, err
	}
	res.OK, _ = row[0].(types.OkResult) // the accumulator returns nothing else
	return res, nil
}

// readSource reads the rows that an INSERT takes from a SELECT. It reads all of them before the first is
// inserted, because they may come from the same table. If there are too many, or after an error,
// go-mysql-server runs the statement.
func (r *run) readSource(ctx *gms.Context, in *plan.Insert) error {
	source := &run{prepared: r.prepared, query: in.Source, s: r.s, tr: r.tr}
	defer func() { r.taken = source.taken }()
	var ok bool
	if source.values, ok = in.Source.Bind(r.values); !ok {
		return ErrPlan
	}
	in.Source.Begin(source, source.values)
	defer in.Source.End()
	if err := in.Source.Compute(ctx, source.values); err != nil {
		return unlessRefused(err)
	}
	rows, err := source.all(ctx)
	switch {
	case myerr.IsConflict(err) || ctx.Err() != nil:
		return err
	case err != nil || len(rows) > changedMax || r.s.WarningCount() > 0:
		r.s.ClearWarnings()
		return ErrPlan
	}
	in.Rows.Rows = rows
	return nil
}

// forget drops what is prepared, because a table that the statement's foreign keys concern has changed.
func (s *Statement) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.prepared = nil
}
