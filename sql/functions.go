package sql

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

var _ gms.Expression = (*exactLiteral)(nil)

// This extension point of go-mysql-server belongs to the process.
func init() {
	ordinary := planbuilder.IsAggregateFunc
	planbuilder.IsAggregateFunc = func(name string) bool {
		return name == exactSumName || name == exactAvgName || ordinary(name)
	}
}

// standIn returns a function that stands in for go-mysql-server's.
func standIn(ctx *gms.Context, name string) (gms.Function, bool) {
	switch {
	case name == exactSumName || strings.EqualFold(name, "sum"):
		return exactSum, true
	case name == exactAvgName || strings.EqualFold(name, "avg"):
		return exactAvg, true
	case name == exactLiteralName:
		if s, ok := ctx.Session.(*Session); ok {
			s.literals = true
		}
		return literal, true
	}
	if f, ok := timeFunction(strings.ToLower(name)); ok {
		return f, true
	}
	if f, ok := wholeFunction(strings.ToLower(name)); ok {
		return f, true
	}
	if f, ok := upsertFunction(ctx, name); ok {
		return f, true
	}
	if f, ok := insertIDFunction(name); ok {
		return f, true
	}
	return textFunction(name)
}

// Functions that stand in for go-mysql-server's.
var (
	exactSum = gms.Function1{Name: "sum", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &exactAggregate{child: e}
	}}
	exactAvg = gms.Function1{Name: "avg", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &exactAggregate{child: e, avg: true}
	}}
	literal = gms.Function1{Name: "literal", Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		if l, ok := e.(*expression.Literal); ok {
			return &exactLiteral{l}
		}
		return e
	}}
)

// An exactLiteral is a literal that go-mysql-server does not know for one while
// it builds a plan: it would convert it to the type of the column that it is
// compared with, and so round it.
type exactLiteral struct{ *expression.Literal }

// WithChildren implements gms.Expression.
func (l *exactLiteral) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(l, len(children), 0)
	}
	return l, nil
}

// plainLiteralsRule is plainLiterals' number, above go-mysql-server's own.
const plainLiteralsRule analyzer.RuleId = 1001

// plainLiterals is a rule that makes literals of the exactLiterals in a plan,
// before any other rule wonders what they are.
func plainLiterals(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	s, ok := ctx.Session.(*Session)
	if !ok {
		return n, transform.SameTree, nil
	}
	s.viewDatabase = "" // nothing is planned any more
	if !s.literals {
		return n, transform.SameTree, nil
	}
	s.literals = false
	return unwrapLiterals(ctx, n)
}

func unwrapLiterals(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	n, same, err := transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		switch e := e.(type) {
		case *exactLiteral:
			return e.Literal, transform.NewTree, nil
		case *plan.Subquery:
			q, same, err := unwrapLiterals(ctx, e.Query)
			if err != nil || bool(same) {
				return e, transform.SameTree, err
			}
			return e.WithQuery(q), transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
	insert, ok := n.(*plan.InsertInto)
	if err != nil || !ok {
		return n, same, err
	}
	// What an INSERT inserts is no child of it.
	source, unchanged, err := unwrapLiterals(ctx, insert.Source)
	if err != nil || bool(unchanged) {
		return n, same, err
	}
	return insert.WithSource(source), transform.NewTree, nil
}
