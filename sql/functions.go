package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/compat"
)

// This extension point of go-mysql-server belongs to the process.
func init() {
	ordinary := planbuilder.IsAggregateFunc
	planbuilder.IsAggregateFunc = func(name string) bool {
		return compat.IsExact(name) || ordinary(name)
	}
}

// standIn returns a function that stands in for go-mysql-server's.
func standIn(ctx *gms.Context, name string) (gms.Function, bool) {
	if name == compat.ExactLiteralName {
		if s, ok := ctx.Session.(*Session); ok {
			s.literals = true
		}
		return compat.Literal, true
	}
	if f, ok := upsertFunction(ctx, name); ok {
		return f, true
	}
	if f, ok := insertIDFunction(name); ok {
		return f, true
	}
	return compat.StandIn(name)
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
	s.ViewDatabase = "" // nothing is planned any more
	if !s.literals {
		return n, transform.SameTree, nil
	}
	s.literals = false
	return compat.UnwrapLiterals(ctx, n)
}
