package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/rowexec"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// buildInsert makes the query of an INSERT: go-mysql-server analyzes it with parameters in place of
// its values.
func (p *prepared) buildInsert(ctx *gms.Context, s *Statement, ast sqlparser.Statement, values []plan.Value) (*plan.Query, error) {
	bound, ok := plan.Parameters(ctx, p.parameters, values)
	if !ok {
		return nil, ErrPlan
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
	return plan.BuildInsert(ctx, root, p.tables[0])
}

// insert runs an INSERT. Its errors and warnings are go-mysql-server's own.
func (s *Statement) insert(ctx *gms.Context, session *store.Session, q *plan.Query, values []plan.Value) (*Result, error) {
	if !q.Insert.Bind(ctx, values) {
		return nil, ErrPlan
	}
	if !q.Insert.Begin(ctx, session) {
		s.forget()
		return nil, ErrPlan
	}
	session.ClearWarnings()
	res := &Result{Planned: true}
	rows, err := s.gms.Analyzer.ExecBuilder.Build(ctx, q.Insert.Node, nil)
	if err != nil {
		return res, err
	}
	rows, _ = rowexec.AddAccumulatorIter(ctx, rows)
	row, err := rows.Next(ctx) // and closes the rows
	if err != nil {
		return res, err
	}
	res.OK, _ = row[0].(types.OkResult) // the accumulator returns nothing else
	return res, nil
}

// forget drops what is prepared: a table has changed that the statement's foreign keys concern.
func (s *Statement) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.prepared = nil
}
