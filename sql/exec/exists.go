package exec

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// exists returns the row that says whether a node has rows. It reads the first of them only.
func (r *run) exists(ctx *gms.Context, n *plan.Exists) (gms.RowIter, error) {
	rows, err := r.open(ctx, n.Child)
	if err != nil {
		return nil, err
	}
	_, err = rows.Next(ctx)
	if err != nil && err != io.EOF {
		_ = rows.Close(ctx) // the first error is the one to return
		return nil, err
	}
	return gms.RowsToRowIter(gms.Row{err == nil}), rows.Close(ctx)
}
