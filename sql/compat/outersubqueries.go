package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// asideCorrelated keeps equalities with a correlated subquery in the condition of an outer join from becoming keys of a hash
// join. go-mysql-server computes such a key from the rows of one side alone, and the subquery may use columns of the other.
func asideCorrelated(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity) {
	join, ok := n.(*plan.JoinNode)
	if !ok || join.Filter == nil || !(join.Op.IsLeftOuter() || join.Op.IsRightOuter() || join.Op.IsFullOuter()) {
		return n, transform.SameTree
	}
	all, changed := expression.SplitConjunction(ctx, join.Filter), false
	for i, e := range all {
		if _, ok := e.(*expression.Equals); ok && hasCorrelated(ctx, e) {
			all[i], changed = newAside(e), true
		}
	}
	if !changed {
		return n, transform.SameTree
	}
	return join.WithFilter(expression.JoinAnd(all...)), transform.NewTree
}

// hasCorrelated reports whether an expression has a subquery that uses columns of the query around it.
func hasCorrelated(ctx *gms.Context, e gms.Expression) (has bool) {
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		q, ok := e.(*plan.Subquery)
		has = has || (ok && !q.Correlated().Empty())
		return !has
	})
	return has
}
