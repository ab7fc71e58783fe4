package compat

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// go-mysql-server omits a sort if the tables are read in its order, but an outer join adds rows
// with NULL out of order.

// replaceSortRule is the name of the rule that removes a sort if the tables are read in its
// order.
const replaceSortRule = "replaceIdxSort"

// notAboveOuterJoins makes the rule ignore sorts by columns on the optional side of an outer
// join: in the order of that table, rows of NULL can come anywhere.
func notAboveOuterJoins(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if sortsByMissing(ctx, n) {
			return n, transform.SameTree, nil
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}

// sortsByMissing reports whether there is a sort by columns on the optional side of an outer
// join below it.
func sortsByMissing(ctx *gms.Context, n gms.Node) bool {
	if s, ok := n.(*plan.Sort); ok && mayMiss(ctx, s.Child, s.SortFields.ToExpressions(), false) {
		return true
	}
	return slices.ContainsFunc(n.Children(), func(c gms.Node) bool { return sortsByMissing(ctx, c) })
}

// mayMiss reports whether one of the expressions uses the optional side of an outer join within
// n. Columns of a derived table count, because their tables are not known.
func mayMiss(ctx *gms.Context, n gms.Node, by []gms.Expression, isDerived bool) bool {
	switch n := n.(type) {
	case *plan.SubqueryAlias:
		isDerived = true
	case *plan.JoinNode:
		if n.JoinType().IsLeftOuter() && (isDerived || isAbout(ctx, by, tablesWithin(n.Right()))) {
			return true
		}
	}
	return slices.ContainsFunc(n.Children(), func(c gms.Node) bool { return mayMiss(ctx, c, by, isDerived) })
}

// isAbout reports whether any of the expressions uses a column of tables.
func isAbout(ctx *gms.Context, all []gms.Expression, tables insiders) (found bool) {
	for _, e := range all {
		gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
			c, ok := e.(*expression.GetField)
			found = found || (ok && tables.have(c))
			return !found
		})
	}
	return found
}

// insiders are the tables within a node, by number and by name. Names are needed because a column
// of a view does not have the view's number. A name that a table inside has cannot mean a table
// outside.
type insiders struct {
	ids   map[gms.TableId]bool
	names map[string]bool
}

func tablesWithin(n gms.Node) insiders {
	in := insiders{tablesOf(n), make(map[string]bool)}
	in.name(n)
	return in
}

// name adds the names of the tables within n, in lower case.
func (in insiders) name(n gms.Node) {
	if t, ok := n.(gms.NameableNode); ok {
		in.names[strings.ToLower(t.Name())] = true
	}
	for _, c := range n.Children() {
		in.name(c)
	}
}

// have reports whether a column belongs, or may belong, to one of the tables.
func (in insiders) have(c *expression.GetField) bool {
	return c.TableId() == 0 || in.ids[c.TableId()] || in.names[strings.ToLower(c.Table())]
}
