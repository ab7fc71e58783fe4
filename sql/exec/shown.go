package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// A Narrower returns a table of information_schema that makes only rows that conditions may accept, or the table itself.
type Narrower func(t gms.Table, conditions []gms.Expression) gms.Table

// shown returns the rows of a table of information_schema.
func (r *run) shown(ctx *gms.Context, n *plan.Shown) (gms.RowIter, error) {
	t := r.narrow(n.Table, n.Conditions)
	partitions, err := t.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	return gms.NewTableRowIter(ctx, t, partitions), nil
}
