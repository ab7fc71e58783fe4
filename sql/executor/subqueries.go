package executor

import (
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
	build := func() (gms.RowIter, error) { return b.NodeExecBuilder.Build(ctx, n, row) }
	if h := store.HoldingOf(ctx); h != nil {
		return h.MeteredSubquery(b.stays, build)
	}
	return build()
}

// MeterSubqueries makes all subqueries in a plan's expressions count the memory of their rows; b
// builds the subqueries.
func MeterSubqueries(ctx *gms.Context, b gms.NodeExecBuilder, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	return transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, x gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		sq, ok := x.(*plan.Subquery)
		if !ok {
			return x, transform.SameTree, nil
		}
		q, same, err := MeterSubqueries(ctx, b, sq.Query)
		if err != nil {
			return x, transform.SameTree, err
		}
		if !same {
			sq = sq.WithQuery(q)
		}
		return sq.WithExecBuilder(&subqueryBuilder{b, sq.CanCacheResults()}), transform.NewTree, nil
	})
}
