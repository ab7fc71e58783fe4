package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// When go-mysql-server orders the joins of four tables or more, it adds the equalities that follow from
// others: a = c from a = b and b = c. Two sets of tables may then be joined by such an equality, while a
// condition that connects them too is held back, because it was written over a join that is not made
// yet. No later join has the condition between its sides, and it is lost. Beside an outer join so is, of three
// tables, a condition of ON about a derived table alone that has become a table.

// withLostConditions wraps the rule that orders joins: it filters the result of joins by the conditions that
// are missing in the plan.
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

// filterLost returns a plan with filters over those of its joins that have lost conditions of the plan before.
// Above its joins the plan is as before.
func filterLost(ctx *gms.Context, before, after gms.Node) (gms.Node, error) {
	if j, ok := before.(*plan.JoinNode); ok {
		lost := lostConditions(ctx, j, after)
		if len(lost) == 0 {
			return after, nil
		}
		return plan.NewFilter(expression.JoinAnd(lost...), after), nil
	}
	children, were := after.Children(), before.Children()
	if len(children) != len(were) {
		return after, nil
	}
	changed := false
	for i := range children {
		child, err := filterLost(ctx, were[i], children[i])
		if err != nil {
			return nil, err
		}
		if child != children[i] {
			children[i], changed = child, true
		}
	}
	if !changed {
		return after, nil
	}
	return after.WithChildren(ctx, children...)
}

// lostConditions returns the conditions of joins that hold for each row of their result and are not in a plan.
func lostConditions(ctx *gms.Context, j *plan.JoinNode, after gms.Node) (lost []gms.Expression) {
	if joins, outer := countJoins(j); joins < joinsLeast && (joins < joinsBesideOuter || outer == 0) {
		return nil
	}
	given := innerConditions(ctx, j, nil)
	kept := make(map[string]bool)
	transform.Inspect(after, func(n gms.Node) bool {
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

// joinsLeast is the number of joins of four tables, and joinsBesideOuter that of three.
const (
	joinsLeast       = 3
	joinsBesideOuter = 2
)

// countJoins counts the joins in a plan, and those of them that are outer joins.
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

// innerConditions appends the conditions of inner joins that hold for each row of the result: those of joins that are
// not on the side of an outer join of which rows may be missing.
func innerConditions(ctx *gms.Context, n gms.Node, to []gms.Expression) []gms.Expression {
	switch n := n.(type) {
	case *plan.Filter:
		return innerConditions(ctx, n.Child, to)
	case *plan.JoinNode:
		switch {
		case n.Op.IsInner() || n.Op == plan.JoinTypeCross:
			if n.Filter != nil {
				to = append(to, expression.SplitConjunction(ctx, n.Filter)...)
			}
			return innerConditions(ctx, n.Right(), innerConditions(ctx, n.Left(), to))
		case n.Op.IsLeftOuter():
			return innerConditions(ctx, n.Left(), to)
		}
	}
	return to
}
