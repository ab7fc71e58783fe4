package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/change"
	"github.com/farmsql/farmsql/sql/compat"
)

// go-mysql-server has this extension point once for the whole process.
func init() {
	ordinary := planbuilder.IsAggregateFunc
	planbuilder.IsAggregateFunc = func(name string) bool {
		return compat.IsExact(name) || ordinary(name)
	}
}

// standIn returns our function that replaces go-mysql-server's of this name.
func standIn(ctx *gms.Context, name string) (gms.Function, bool) {
	if name == compat.ExactLiteralName {
		if s, ok := ctx.Session.(*Session); ok {
			s.running.literals = true
		}
		return compat.Literal, true
	}
	if f, ok := change.Function(ctx, name); ok {
		return f, true
	}
	return compat.StandIn(name)
}

// plainLiteralsRule is the number of the rule plainLiterals. It is above all of go-mysql-server's
// own.
const plainLiteralsRule analyzer.RuleId = 1001

// plainLiterals is a rule that turns each exactLiteral of a plan into a literal before the other
// rules run, because these do not know the type exactLiteral.
func plainLiterals(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	s, ok := ctx.Session.(*Session)
	if !ok {
		return n, transform.SameTree, nil
	}
	s.running.viewDatabase = "" // the view is planned: see readView
	if !s.running.literals {
		return n, transform.SameTree, nil
	}
	s.running.literals = false
	return compat.UnwrapLiterals(ctx, n)
}
