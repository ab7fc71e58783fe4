package exec

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// exists returns the row that says whether a node has rows.
func (r *run) exists(ctx *gms.Context, n *plan.Exists) (gms.RowIter, error) {
	has, err := r.hasRow(ctx, n.Child)
	if err != nil {
		return nil, err
	}
	return gms.RowsToRowIter(gms.Row{has}), nil
}

// hasRow reports whether a node has rows. It reads only the first.
func (r *run) hasRow(ctx *gms.Context, n plan.Node) (bool, error) {
	rows, err := r.open(ctx, n)
	if err != nil {
		return false, err
	}
	_, err = rows.Next(ctx)
	if err != nil && err != io.EOF {
		_ = rows.Close(ctx) // the first error is the one to return
		return false, err
	}
	return err == nil, rows.Close(ctx)
}
