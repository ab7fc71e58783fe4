package sql

import (
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/store"
)

var _ gms.NodeExecBuilder = (*subqueryBuilder)(nil)

// A subqueryBuilder builds subqueries in expressions. Their rows are read to the end, and
// may be cached.
type subqueryBuilder struct {
	gms.NodeExecBuilder
	stays bool
}

// Build implements gms.NodeExecBuilder.
func (b *subqueryBuilder) Build(ctx *gms.Context, n gms.Node, row gms.Row) (gms.RowIter, error) {
	rows, err := b.NodeExecBuilder.Build(ctx, n, row)
	s, ok := ctx.Session.(*Session)
	if err != nil || !ok {
		return rows, err
	}
	return s.Holding.Metered(rows, store.Metering{Most: math.MaxInt64, Stays: b.stays}), nil
}

// meterSubqueries gives all subqueries in a plan's expressions to subqueryBuilders.
func (e *Engine) meterSubqueries(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	return transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, x gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		sq, ok := x.(*plan.Subquery)
		if !ok {
			return x, transform.SameTree, nil
		}
		q, same, err := e.meterSubqueries(ctx, sq.Query)
		if err != nil {
			return x, transform.SameTree, err
		}
		if !same {
			sq = sq.WithQuery(q)
		}
		return sq.WithExecBuilder(&subqueryBuilder{e.gms.Analyzer.ExecBuilder, sq.CanCacheResults()}), transform.NewTree, nil
	})
}
