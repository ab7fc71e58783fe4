package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/myerr"
)

// ownAggregates refuses a subquery with an aggregate of outer columns only: in SQL it is an
// aggregate of the outer query, which go-mysql-server does not support.
func ownAggregates(ctx *gms.Context, query gms.Node) (err error) {
	inside := tablesWithin(query)
	transform.Inspect(query, func(n gms.Node) bool {
		g, ok := n.(*plan.GroupBy)
		if !ok {
			return err == nil
		}
		for _, e := range g.SelectDeps {
			gms.Inspect(ctx, e, func(ctx *gms.Context, e gms.Expression) bool {
				a, ok := e.(gms.Aggregation)
				if ok && err == nil && isOfOutside(ctx, a, inside) {
					err = myerr.NotSupported("'%s' in a subquery, which is an aggregate of the query around. "+
						"Write it there, or in a derived table that is joined", strings.Replace(a.String(), ExactSumName, "sum", 1))
				}
				return !ok
			})
		}
		return err == nil
	})
	return err
}

// isOfOutside reports whether an aggregate uses columns, but none of the inside tables. It returns false
// for an aggregate with a subquery.
func isOfOutside(ctx *gms.Context, a gms.Aggregation, inside insiders) bool {
	hasColumns, mayBeInside := false, false
	gms.Inspect(ctx, a, func(_ *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *expression.GetField:
			hasColumns = true
			mayBeInside = mayBeInside || inside.have(e)
		case *plan.Subquery:
			mayBeInside = true // the subquery may use an inside table
		}
		return true
	})
	return hasColumns && !mayBeInside
}
