package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// The ORDER BY of a UNION, INTERSECT or EXCEPT may only name columns of the result. go-mysql-server
// also accepts columns of the first SELECT's tables, and aggregates, and then finds no value for
// them.

// setOperations: a statement with a set operation contains at least one of these words.
var setOperations = []string{"union", "intersect", "except"}

// CheckUnionOrders refuses aggregates and window functions in the ORDER BY of a set operation.
func CheckUnionOrders(query string, stmt sqlparser.Statement) error {
	if stmt == nil || !containsOne(query, setOperations) {
		return nil
	}
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		u, ok := n.(*sqlparser.SetOp)
		if !ok {
			return true, nil
		}
		for i, o := range u.OrderBy {
			if aggregates(o.Expr) {
				return false, myerr.AggregateOrdersUnion.New(i + 1)
			}
		}
		return true, nil
	}, stmt)
}

// aggregates reports whether an expression has an aggregate or a window function, outside of subqueries.
func aggregates(e sqlparser.Expr) bool {
	found := false
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Subquery:
			return false, nil
		case *sqlparser.FuncExpr:
			found = found || n.IsAggregate() || n.Over != nil
		case *sqlparser.GroupConcatExpr:
			found = true
		}
		return !found, nil
	}, e)
	return found
}

// checkUnionOrder refuses an ORDER BY of a set operation with columns that the first SELECT reads but does not return.
func checkUnionOrder(ctx *gms.Context, s *plan.SetOp) error {
	if len(s.SortFields) == 0 {
		return nil
	}
	below := columnsBelow(s.Left())
	for _, f := range s.SortFields {
		var unknown error
		transform.InspectExpr(ctx, f.Column, func(_ *gms.Context, e gms.Expression) bool {
			g, ok := e.(*expression.GetField)
			if ok && below.Contains(g.Id()) && !s.Columns().Contains(g.Id()) {
				unknown = gms.ErrColumnNotFound.New(g.Name())
			}
			return unknown != nil // true ends the walk
		})
		if unknown != nil {
			return unknown
		}
	}
	return nil
}

// columnsBelow returns the columns of all tables below a node.
func columnsBelow(n gms.Node) (all gms.ColSet) {
	transform.Inspect(n, func(n gms.Node) bool {
		if t, ok := n.(plan.TableIdNode); ok {
			all = all.Union(t.Columns())
		}
		return true
	})
	return all
}
