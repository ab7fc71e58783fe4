package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"

	"github.com/farmsql/farmsql/sql/plan"
)

// countsRows returns the scan whose rows a node counts; false if the node does something else.
func countsRows(ctx *gms.Context, n *plan.Group) (*plan.Scan, bool) {
	scan, ok := n.Child.(*plan.Scan)
	if !ok || len(n.By) > 0 || len(n.Exprs) != 1 {
		return nil, false
	}
	count, ok := n.Exprs[0].(*aggregation.Count)
	return scan, ok && isNeverNull(ctx, count.Children()[0])
}

// isNeverNull reports whether COUNT of an expression counts all rows. It looks at columns and literals only.
func isNeverNull(ctx *gms.Context, e gms.Expression) bool {
	switch e := e.(type) {
	case *expression.Star:
		return true
	case *expression.Literal:
		return e.Value() != nil
	case *expression.GetField:
		return !e.IsNullable(ctx)
	}
	return false
}

// counted returns the row with the number of rows of a scan.
func (r *run) counted(ctx *gms.Context, n *plan.Scan) (gms.RowIter, error) {
	rows, err := r.scan(ctx, n)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, branch := range branchesOf(rows) {
		table, ok := branch.(storeRows)
		if !ok {
			return nil, ErrPlan
		}
		count, err := table.Count(ctx)
		if err != nil {
			return nil, err
		}
		total += count
	}
	return gms.RowsToRowIter(gms.Row{total}), nil
}
