package compat

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/row"
)

// This file wraps go-mysql-server's rules in our corrections. Its own corrections concern joins
// that replace subqueries. go-mysql-server's rule ignores that the subquery of a comparison may
// have only one row. In NOT IN it treats NULL as true.

// unnestInSubqueries is the name of the rule that turns subqueries into joins.
const unnestInSubqueries = "unnestInSubqueries"

// hoistFilters is the name of the rule that moves conditions on the outer query out of subqueries.
const hoistFilters = "hoistOutOfScopeFilters"

// unnestExists is the name of the rule that turns EXISTS into joins.
const unnestExists = "unnestExistsSubqueries"

// ChangeRules wraps rules of go-mysql-server in ours.
func ChangeRules(a *analyzer.Analyzer) {
	for _, b := range a.Batches {
		b.Rules = slices.Clone(b.Rules) // the slice is shared by all engines of the process
		for i := range b.Rules {
			switch b.Rules[i].Id.String() {
			case selectLimitRule:
				b.Rules[i].Apply = withSelectLimit(b.Rules[i].Apply)
			case unnestInSubqueries:
				b.Rules[i].Apply = withinJoins(withSingleRows(b.Rules[i].Apply))
			case hoistFilters:
				b.Rules[i].Apply = keepSubqueries(b.Rules[i].Apply)
			case unnestExists:
				b.Rules[i].Apply = withinJoins(keepSubqueries(b.Rules[i].Apply))
			case replaceCrossJoinsRule:
				b.Rules[i].Apply = notInOuterJoins(b.Rules[i].Apply)
			case validateGroups:
				b.Rules[i].Apply = withConstants(b.Rules[i].Apply)
			case MoveJoinConds:
				b.Rules[i].Apply = withEqualities(b.Rules[i].Apply)
			case optimizeJoinsRule:
				b.Rules[i].Apply = withLostConditions(withWholeTimes(withoutOutside(b.Rules[i].Apply)))
			case outerScopeIndexes:
				b.Rules[i].Apply = aboveLimits(b.Rules[i].Apply)
			case pushAliasFilters:
				b.Rules[i].Apply = notBelowLaterals(b.Rules[i].Apply)
			case pushFiltersRule:
				b.Rules[i].Apply = aboveOuterJoins(b.Rules[i].Apply)
			case replaceSortRule:
				b.Rules[i].Apply = notAboveOuterJoins(b.Rules[i].Apply)
			case resolveCreateSelect:
				b.Rules[i].Apply = onlyNew(b.Rules[i].Apply)
			case validateUnions:
				b.Rules[i].Apply = withWideUnions(b.Rules[i].Apply)
			case insertTopNRule:
				b.Rules[i].Apply = withoutLongTops(b.Rules[i].Apply)
			}
		}
	}
}

// changedFirst returns a rule that changes the plan and then applies another rule.
func changedFirst(apply analyzer.RuleFunc, change func(*gms.Context, gms.Node) (gms.Node, transform.TreeIdentity, error)) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		changed, unchanged, err := change(ctx, n)
		if err != nil {
			return n, transform.SameTree, err
		}
		out, same, err := apply(ctx, a, changed, scope, sel, flags)
		return out, same && unchanged, err
	}
}

// withSubqueries changes a plan, and the plans of the subqueries in its expressions.
func withSubqueries(ctx *gms.Context, n gms.Node, change func(*gms.Context, gms.Node) (gms.Node, transform.TreeIdentity, error)) (gms.Node, transform.TreeIdentity, error) {
	n, same, err := change(ctx, n)
	if err != nil {
		return n, same, err
	}
	n, unchanged, err := transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		q, ok := e.(*plan.Subquery)
		if !ok {
			return e, transform.SameTree, nil
		}
		query, same, err := withSubqueries(ctx, q.Query, change)
		if err != nil || bool(same) {
			return e, transform.SameTree, err
		}
		return q.WithQuery(query), transform.NewTree, nil
	})
	return n, same && unchanged, err
}

// withSingleRows adds a check to joins that replace a comparison with a subquery: they fail with
// error 1242 if the subquery has several rows. go-mysql-server's rule does not check that.
func withSingleRows(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if !flags.SubqueryIsSet() {
			return n, transform.SameTree, nil // there is no subquery, so nothing to do for the rule
		}
		guarded, unguarded, err := withSubqueries(ctx, n, guardSubqueries) // these subqueries may become joins with the outer query's tables
		if err != nil {
			return n, transform.SameTree, err
		}
		out, same, err := apply(ctx, a, guarded, scope, sel, flags)
		if err != nil || bool(same) {
			return out, same && unguarded, err
		}
		out, _, err = transform.Node(ctx, out, joinedByColumns)
		return out, same, err
	}
}

// joinedByColumns replaces comparisons of rows in a join by comparisons of their columns.
func joinedByColumns(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	if _, ok := n.(*plan.JoinNode); !ok {
		return n, transform.SameTree, nil
	}
	return transform.OneNodeExpressions(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if changed, ok := plainRows(ctx, e); ok {
			return changed, transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
}

// guardSubqueries puts a Max1Row over each subquery that a filter compares with, unless the subquery
// always has at most one row, or depends on the outer row. In a filter with a NOT IN that may be NULL, it
// only does what asideNotIn does.
func guardSubqueries(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.DeleteFrom, *plan.InsertInto:
		return n, transform.SameTree, nil // the rule does not change these nodes
	}
	return transform.Node(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		f, ok := n.(*plan.Filter)
		if !ok {
			return n, transform.SameTree, nil
		}
		f, isAside := asideNotIn(ctx, f)
		guarded, same, err := transform.OneNodeExprsWithNode(ctx, f, func(ctx *gms.Context, _ gms.Node, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
			c, ok := e.(expression.Comparer)
			if !ok {
				return e, transform.SameTree, nil
			}
			if _, in := e.(*plan.InSubquery); in {
				return e, transform.SameTree, nil
			}
			sq, ok := c.Right().(*plan.Subquery)
			if !ok || !sq.CanCacheResults() || singleRow(ctx, sq.Query) {
				return e, transform.SameTree, nil
			}
			guarded, err := e.WithChildren(ctx, c.Left(), sq.WithQuery(plan.NewMax1Row(sq.Query, "")))
			return guarded, transform.NewTree, err
		})
		return guarded, same && !transform.TreeIdentity(isAside), err
	})
}

// asideNotIn prevents a NOT IN (SELECT ...) that may be NULL from becoming a join, which would take
// NULL for true.
func asideNotIn(ctx *gms.Context, f *plan.Filter) (aside *plan.Filter, changed bool) {
	all := expression.SplitConjunction(ctx, f.Expression)
	for i, e := range all {
		not, ok := e.(*expression.Not)
		if !ok {
			continue
		}
		if in, ok := not.Child.(*plan.InSubquery); ok && maybeNull(ctx, in, f.Child) {
			all[i], changed = newAside(e), true
		}
	}
	if !changed {
		return f, false
	}
	return plan.NewFilter(expression.JoinAnd(all...), f.Child), true
}

// maybeNull reports whether a side of IN may be NULL; the left side has the rows of the node source.
func maybeNull(ctx *gms.Context, in *plan.InSubquery, source gms.Node) bool {
	sq, ok := in.RightChild.(*plan.Subquery)
	if !ok || isNullable(ctx, in.LeftChild) || len(missingIn(source)) > 0 || len(missingIn(sq.Query)) > 0 {
		return true
	}
	return slices.ContainsFunc(sq.Query.Schema(ctx), func(c *gms.Column) bool { return c.Nullable })
}

// isNullable reports whether a value, or a value of a row, may be NULL.
func isNullable(ctx *gms.Context, e gms.Expression) bool {
	if row, ok := e.(expression.Tuple); ok {
		return slices.ContainsFunc(row, func(e gms.Expression) bool { return isNullable(ctx, e) })
	}
	return e.IsNullable(ctx)
}

// singleRow reports whether a plan cannot have more than one row.
func singleRow(ctx *gms.Context, n gms.Node) bool {
	switch n := n.(type) {
	case *plan.Max1Row:
		return true
	case *plan.GroupBy:
		return len(n.GroupByExprs) == 0
	case *plan.Project:
		return singleRow(ctx, n.Child)
	case *plan.Filter:
		return singleRow(ctx, n.Child) || givesKey(ctx, n)
	case *plan.Limit:
		l, ok := n.Limit.(*expression.Literal)
		return ok && isOne(l.Value())
	}
	return false
}

// isOne reports whether a value is the number 1.
func isOne(v any) bool {
	n, ok := row.Signed(v)
	return ok && n == 1
}

// givesKey reports whether a filter over one table fixes its whole primary key by column = literal.
func givesKey(ctx *gms.Context, f *plan.Filter) bool {
	switch f.Child.(type) {
	case *plan.ResolvedTable, *plan.TableAlias:
	default:
		return false
	}
	given := make(map[string]bool)
	for _, e := range expression.SplitConjunction(ctx, f.Expression) {
		if eq, ok := e.(*expression.Equals); ok {
			column, isColumn := eq.Left().(*expression.GetField)
			_, isValue := eq.Right().(*expression.Literal)
			if isColumn && isValue {
				given[strings.ToLower(column.Name())] = true
			}
		}
	}
	keys := 0
	for _, c := range f.Child.Schema(ctx) {
		if c.PrimaryKey {
			keys++
			if !given[strings.ToLower(c.Name)] {
				return false
			}
		}
	}
	return keys > 0
}
