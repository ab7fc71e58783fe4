package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// When go-mysql-server orders the joins of four tables or more, it adds the equalities that follow
// from others: a = c from a = b and b = c. It may then join two sets of tables by such an equality,
// while it holds back another condition that connects them: that condition was written over a join
// that is not made yet. No later join has the condition between its sides, so the condition is
// lost. Beside an outer join this happens with three tables, too: a condition of ON about a derived
// table alone is lost if the derived table has become a table of the join.

// withLostConditions wraps the rule that orders joins. It filters the result of joins by the
// conditions that are missing in the new plan.
func withLostConditions(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err != nil || bool(same) {
			return out, same, err
		}
		out, err = filterLost(ctx, n, out)
		return out, same, err
	}
}

// filterLost returns the rewritten plan, with a filter over each join that has lost conditions of the
// original plan. Above its joins the rewritten plan must have the same form as the original: below
// a node that has gained or lost children, filterLost adds no filters.
func filterLost(ctx *gms.Context, original, rewritten gms.Node) (gms.Node, error) {
	if j, ok := original.(*plan.JoinNode); ok {
		lost := lostConditions(ctx, j, rewritten)
		if len(lost) == 0 {
			return rewritten, nil
		}
		return plan.NewFilter(expression.JoinAnd(lost...), rewritten), nil
	}
	children, earlier := rewritten.Children(), original.Children()
	if len(children) != len(earlier) {
		return rewritten, nil
	}
	changed := false
	for i := range children {
		child, err := filterLost(ctx, earlier[i], children[i])
		if err != nil {
			return nil, err
		}
		if child != children[i] {
			children[i], changed = child, true
		}
	}
	if !changed {
		return rewritten, nil
	}
	return rewritten.WithChildren(ctx, children...)
}

// lostConditions returns the conditions that hold for each row of the join j and are not in the rewritten plan. It looks only
// at joins of so many tables that go-mysql-server loses conditions.
func lostConditions(ctx *gms.Context, j *plan.JoinNode, rewritten gms.Node) (lost []gms.Expression) {
	if joins, outer := countJoins(j); joins < joinsLeast && (joins < joinsBesideOuter || outer == 0) {
		return nil
	}
	given := innerConditions(ctx, j, nil)
	kept := make(map[string]bool)
	transform.Inspect(rewritten, func(n gms.Node) bool {
		if x, ok := n.(gms.Expressioner); ok {
			for _, e := range x.Expressions() {
				for _, c := range expression.SplitConjunction(ctx, e) {
					kept[c.String()] = true
				}
			}
		}
		return true
	})
	for _, e := range given {
		if !kept[e.String()] {
			lost = append(lost, e)
		}
	}
	return lost
}

// joinsLeast is the number of joins of four tables, joinsBesideOuter the number of joins of three.
const (
	joinsLeast       = 3
	joinsBesideOuter = 2
)

// countJoins counts all joins in a plan, and the outer joins among them.
func countJoins(n gms.Node) (all, outer int) {
	transform.Inspect(n, func(n gms.Node) bool {
		if j, ok := n.(*plan.JoinNode); ok {
			all++
			if j.Op.IsLeftOuter() {
				outer++
			}
		}
		return true
	})
	return all, outer
}

// innerConditions appends to found the conditions of inner joins that hold for each row of the result. It
// skips joins on the optional side of an outer join.
func innerConditions(ctx *gms.Context, n gms.Node, found []gms.Expression) []gms.Expression {
	switch n := n.(type) {
	case *plan.Filter:
		return innerConditions(ctx, n.Child, found)
	case *plan.JoinNode:
		switch {
		case n.Op.IsInner() || n.Op == plan.JoinTypeCross:
			if n.Filter != nil {
				found = append(found, expression.SplitConjunction(ctx, n.Filter)...)
			}
			return innerConditions(ctx, n.Right(), innerConditions(ctx, n.Left(), found))
		case n.Op.IsLeftOuter():
			return innerConditions(ctx, n.Left(), found)
		}
	}
	return found
}
