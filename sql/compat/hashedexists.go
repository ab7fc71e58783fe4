package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// IN (SELECT ...) and EXISTS become joins that ask whether the right side has a row. If no index
// leads to that row, go-mysql-server executes the right side again for each row of the left: it
// uses hash joins only for joins that return the rows of both sides.

// hashExists makes a join that asks for rows of its right side find them in a hash table.
func hashExists(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	j, ok := n.(*plan.JoinNode)
	if !ok || j.Filter == nil || !asksForRows(j.Op) || !isIndependent(ctx, j.Right()) {
		return n, transform.SameTree, nil
	}
	left, right := tablesOf(j.Left()), tablesOf(j.Right())
	var probe, entry expression.Tuple
	for _, e := range expression.SplitConjunction(ctx, j.Filter) {
		equal, ok := e.(*expression.Equals)
		if !ok {
			continue
		}
		a, b := equal.Left(), equal.Right()
		if isOf(a, right) && isOf(b, left) {
			a, b = b, a
		}
		if isOf(a, left) && isOf(b, right) && hashAlike(ctx, a, b) {
			probe, entry = append(probe, a), append(entry, b)
		}
	}
	if len(probe) == 0 {
		return n, transform.SameTree, nil
	}
	op := j.Op.AsHash()
	return plan.NewJoin(j.Left(), plan.NewHashLookup(ctx, j.Right(), entry, probe, op), op, j.Filter), transform.NewTree, nil
}

// asksForRows reports whether a join returns the rows of its left side for which the right side has
// a row, or has none. A condition that is NULL must count as false. In NOT IN it does not: with a
// NULL, NOT IN returns no row.
func asksForRows(op plan.JoinType) bool {
	return op == plan.JoinTypeSemi || op == plan.JoinTypeAntiIncludeNulls
}

// isIndependent reports whether a node returns the same rows each time that it is executed for a
// row of another node. So it must use only its own columns, and nothing that changes while the
// statement runs.
func isIndependent(ctx *gms.Context, n gms.Node) bool {
	own := ownColumns{tablesOf(n), make(map[gms.ColumnId]bool)}
	own.note(ctx, n)
	independent := true
	transform.InspectWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.RecursiveTable, *plan.RecursiveCte, *plan.JSONTable:
			independent = false
		case *plan.SubqueryAlias:
			independent = independent && !n.OuterScopeVisibility && !n.IsLateral
		}
		if x, ok := n.(gms.Expressioner); ok {
			for _, e := range x.Expressions() {
				independent = independent && isOwn(ctx, e, own)
			}
		}
		return independent
	})
	return independent
}

// ownColumns has the columns of a node's tables, and the columns computed in the node.
type ownColumns struct {
	tables   map[gms.TableId]bool
	computed map[gms.ColumnId]bool
}

// note notes the columns that are computed in a node: they do not have the id of a table.
func (own ownColumns) note(ctx *gms.Context, n gms.Node) {
	transform.InspectWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) bool {
		if x, ok := n.(gms.Expressioner); ok {
			for _, e := range x.Expressions() {
				gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
					if _, isColumn := e.(*expression.GetField); isColumn {
						return false
					}
					if e, ok := e.(gms.IdExpression); ok && e.Id() != 0 {
						own.computed[e.Id()] = true
					}
					return true
				})
			}
		}
		return true
	})
}

// has reports whether a column belongs to own.
func (own ownColumns) has(f *expression.GetField) bool {
	return own.tables[f.TableId()] || own.computed[f.Id()]
}

// isOwn reports whether an expression uses only columns in own, and nothing that changes while the statement runs.
func isOwn(ctx *gms.Context, e gms.Expression, own ownColumns) bool {
	isAllOwn := true
	gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *expression.GetField:
			isAllOwn = isAllOwn && own.has(e)
		case *plan.Subquery, *expression.ProcedureParam, *expression.UserVar:
			isAllOwn = false
		case gms.NonDeterministicExpression:
			isAllOwn = isAllOwn && !e.IsNonDeterministic()
		}
		return isAllOwn
	})
	return isAllOwn
}

// isOf reports whether an expression is a column of one of the tables.
func isOf(e gms.Expression, tables map[gms.TableId]bool) bool {
	c, ok := e.(*expression.GetField)
	return ok && tables[c.TableId()]
}

// hashAlike reports whether equal values of the two columns have the same key in a hash table, as far as
// their types show.
func hashAlike(ctx *gms.Context, a, b gms.Expression) bool {
	of, other := a.Type(ctx), b.Type(ctx)
	if types.IsInteger(of) && types.IsInteger(other) {
		return true
	}
	if types.IsTextOnly(of) && types.IsTextOnly(other) {
		collation, aIsText := collatedText(ctx, a)
		otherCollation, bIsText := collatedText(ctx, b)
		return aIsText && bIsText && collation == otherCollation
	}
	return of.Equals(other) && (types.IsDecimal(of) || types.IsDatetimeType(of))
}
