package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// go-mysql-server mistakes a subquery's conditions on the outer query for conditions on the
// subquery's own tables.

// optimizeJoinsRule is the name of the rule that finds indexes.
const optimizeJoinsRule = "optimizeJoins"

// withoutOutside corrects filters over tables, and hash joins, in subqueries. A condition on a
// column of the outer query must not be used for an index of the subquery's table. go-mysql-server
// finds indexes only by the names of columns. withoutOutside also hides long lists from the rule, and
// then looks them up itself.
func withoutOutside(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		marked, unmarked, err := transform.Node(ctx, n, markOutside)
		if err != nil {
			return n, transform.SameTree, err
		}
		hidden, noneHidden, err := transform.Node(ctx, marked, hideLists)
		if err != nil {
			return n, transform.SameTree, err
		}
		out, same, err := apply(ctx, a, hidden, scope, sel, flags)
		if err != nil {
			return n, transform.SameTree, err
		}
		same = same && unmarked && noneHidden
		if !noneHidden {
			if out, _, err = transform.Node(ctx, out, lookupLists); err != nil {
				return n, transform.SameTree, err
			}
		}
		hashed, noneHashed, err := transform.Node(ctx, out, hashExists)
		if err != nil {
			return n, transform.SameTree, err
		}
		weighed, noneWeighed, err := transform.Node(ctx, hashed, hashByWeights)
		return weighed, same && noneHashed && noneWeighed, err
	}
}

// markOutside marks the conditions in a filter over one table that use other tables. It does not
// mark a comparison of a column with a value of the outer query: that can be a lookup.
func markOutside(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok {
		return n, transform.SameTree, nil
	}
	if below, ok := f.Child.(*plan.Filter); ok {
		f = plan.NewFilter(expression.JoinAnd(f.Expression, below.Expression), below.Child)
	}
	table, ok := f.Child.(plan.TableIdNode)
	if !ok {
		return n, transform.SameTree, nil
	}
	once, changed, err := onceEqual(ctx, f.Expression)
	if err != nil {
		return n, transform.SameTree, err
	}
	same := transform.TreeIdentity(!changed)
	all := expression.SplitConjunction(ctx, once)
	for i, e := range all {
		if _, isMarked := e.(*aside); !isMarked && isOutside(ctx, e, table.Id()) && !isLookup(ctx, e, table.Id()) {
			all[i], same = newAside(e), transform.NewTree
		}
	}
	if same {
		return n, same, nil
	}
	return plan.NewFilter(expression.JoinAnd(all...), f.Child), same, nil
}

// outerScopeIndexes is the name of the rule that finds indexes for a subquery's conditions on the
// outer query.
const outerScopeIndexes = "applyIndexesFromOuterScope"

// aboveLimits wraps the rule applyIndexesFromOuterScope. It keeps a subquery's conditions on the
// outer query above a LIMIT or a window: used in a lookup below, they would change the rows that
// the LIMIT or window returns.
func aboveLimits(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return changedFirst(apply, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		return transform.NodeWithOpaque(ctx, n, asideAboveLimit)
	})
}

// asideAboveLimit marks the condition of a filter over a plan with a LIMIT or a window.
func asideAboveLimit(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	f, ok := n.(*plan.Filter)
	if !ok || !isLimited(f.Child) {
		return n, transform.SameTree, nil
	}
	if _, known := f.Expression.(*aside); known {
		return n, transform.SameTree, nil
	}
	return plan.NewFilter(newAside(f.Expression), f.Child), transform.NewTree, nil
}

// isLimited reports whether a plan has a LIMIT or a window, outside of derived tables.
func isLimited(n gms.Node) (is bool) {
	transform.Inspect(n, func(n gms.Node) bool {
		switch n.(type) {
		case *plan.Limit, *plan.TopN, *plan.Offset, *plan.Window:
			is = true
		}
		return !is
	})
	return is
}

// An aside is a condition that go-mysql-server evaluates, but that its rules do not look into.
type aside struct{ expression.UnaryExpressionStub }

func newAside(e gms.Expression) *aside { return &aside{expression.UnaryExpressionStub{Child: e}} }

var _ gms.Expression = (*aside)(nil)

// Type implements gms.Expression.
func (a *aside) Type(ctx *gms.Context) gms.Type { return a.Child.Type(ctx) }

// Eval implements gms.Expression.
func (a *aside) Eval(ctx *gms.Context, row gms.Row) (any, error) { return a.Child.Eval(ctx, row) }

// String implements gms.Expression.
func (a *aside) String() string { return a.Child.String() }

// WithChildren implements gms.Expression.
func (a *aside) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(a, len(children), 1)
	}
	return newAside(children[0]), nil
}

// isOutside reports whether an expression uses columns of other tables.
func isOutside(ctx *gms.Context, e gms.Expression, table gms.TableId) (is bool) {
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		if c, ok := e.(*expression.GetField); ok && c.TableId() != table {
			is = true
		}
		return !is
	})
	return is
}

// isLookup reports whether a condition compares a column of a table with a value that does not
// depend on the table.
func isLookup(ctx *gms.Context, e gms.Expression, table gms.TableId) bool {
	c, ok := e.(expression.Comparer)
	if !ok {
		return false
	}
	own := func(e gms.Expression) bool {
		f, ok := e.(*expression.GetField)
		return ok && f.TableId() == table
	}
	if _, isIn := e.(*expression.InTuple); isIn {
		return false
	}
	return (own(c.Left()) && isOutside(ctx, c.Right(), table)) || (own(c.Right()) && isOutside(ctx, c.Left(), table))
}
