package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// go-mysql-server turns EXISTS and IN into joins even where the join returns other rows, and
// moves conditions out of subqueries even where that changes their rows.

// keepSubqueries prevents EXISTS and IN from becoming a join, or losing conditions, where that
// would change the result: see isKept.
func keepSubqueries(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return changedFirst(apply, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		return transform.Node(ctx, n, asideSubqueries)
	})
}

// asideSubqueries marks the conditions of a filter that contain an EXISTS or IN for which isKept is
// true. Over an outer join it marks all conditions with EXISTS or IN. As joins they would be tested
// before the outer join adds rows of NULL, and their columns would count as NOT NULL.
func asideSubqueries(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n, transform.SameTree, nil
	}
	isOverOuter := len(missingIn(f.Child)) > 0
	all := expression.SplitConjunction(ctx, f.Expression)
	same := transform.SameTree
	for i, e := range all {
		_, isNegated := e.(*expression.Not)
		gms.Inspect(ctx, e, func(ctx *gms.Context, in gms.Expression) bool {
			var query *plan.Subquery
			switch in := in.(type) {
			case *aside:
				return false
			case *plan.ExistsSubquery:
				query = in.Query
			case *plan.InSubquery:
				query, _ = in.RightChild.(*plan.Subquery)
			default:
				return true
			}
			if isOverOuter || (query != nil && isKept(ctx, query, isNegated)) {
				all[i], same = newAside(e), transform.NewTree
			}
			return true
		})
	}
	if same {
		return n, same, nil
	}
	return plan.NewFilter(expression.JoinAnd(all...), f.Child), same, nil
}

// isKept reports whether go-mysql-server's rules would change the result of a subquery, so that the
// subquery must be kept as it is. isNegated is set if the subquery is under a NOT.
func isKept(ctx *gms.Context, query *plan.Subquery, isNegated bool) bool {
	return (isNegated && hasOuterCondition(ctx, query.Query)) || hasLateralLeft(query.Query) || countsRows(ctx, query.Query) || joinsDerived(query)
}

// countsRows reports whether a subquery's rows depend on more than its conditions, because the
// rules keep only the conditions. An aggregate without GROUP BY always returns one row, and LIMIT 0
// returns none. The result of a LIMIT or a window depends on rows that a join would leave out. LIMIT 1,
// which programs write in EXISTS, does not count.
func countsRows(ctx *gms.Context, query gms.Node) (does bool) {
	transform.InspectWithOpaque(ctx, query, func(_ *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.GroupBy:
			does = does || len(n.GroupByExprs) == 0
		case *plan.Window:
			does = true
		case *plan.Limit:
			l, ok := n.Limit.(*expression.Literal)
			does = does || !ok || !isOne(l.Value())
		}
		return !does
	})
	return does
}

// joinsDerived reports whether a correlated subquery joins a derived table: a join in its place
// would lose the derived table's conditions.
func joinsDerived(query *plan.Subquery) (does bool) {
	if query.Correlated().Empty() {
		return false
	}
	transform.Inspect(query.Query, func(n gms.Node) bool {
		if j, ok := n.(*plan.JoinNode); ok {
			does = does || slices.ContainsFunc(j.Children(), isDerived)
		}
		return !does
	})
	return does
}

func isDerived(n gms.Node) bool {
	_, is := n.(*plan.SubqueryAlias)
	return is
}

// hasOuterCondition reports whether a subquery has a condition that uses only columns of the outer
// query. The rules would move the condition out of the subquery, which is wrong if the subquery is
// under a NOT.
func hasOuterCondition(ctx *gms.Context, query gms.Node) (does bool) {
	inside := tablesOf(query)
	transform.InspectWithOpaque(ctx, query, func(ctx *gms.Context, n gms.Node) bool {
		f, ok := n.(*plan.Filter)
		if !ok {
			return true
		}
		for _, e := range expression.SplitConjunction(ctx, f.Expression) {
			about, known := mentions(ctx, e)
			isOuter := known && len(about) > 0 && !slices.ContainsFunc(about, func(t gms.TableId) bool { return inside[t] })
			does = does || isOuter
		}
		return true
	})
	return does
}
