package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// when returns the rows of a node if a query has a row, or if it has none.
func (r *run) when(ctx *gms.Context, n *plan.When) (gms.RowIter, error) {
	has, err := r.hasRow(ctx, n.Query)
	if err != nil {
		return nil, err
	}
	if has == n.Not {
		return gms.RowsToRowIter(), nil
	}
	return r.open(ctx, n.Child)
}
