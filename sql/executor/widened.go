package executor

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A widened converts integers to decimals in some columns of the rows of a set operation.
type widened struct {
	gms.RowIter
	columns []int
	to      gms.Type
}

// wideColumns returns the columns of a set operation that are decimals on one side and integers on the
// other.
func wideColumns(ctx *gms.Context, n *plan.SetOp) (columns []int) {
	left, right := n.Left().Schema(ctx), n.Right().Schema(ctx)
	for i := range left {
		if (types.IsDecimal(left[i].Type) && types.IsInteger(right[i].Type)) || (types.IsInteger(left[i].Type) && types.IsDecimal(right[i].Type)) {
			columns = append(columns, i)
		}
	}
	return columns
}

// widen returns the rows with decimals in the given columns.
func widen(rows gms.RowIter, columns []int) gms.RowIter {
	if len(columns) == 0 {
		return rows
	}
	return &widened{rows, columns, types.InternalDecimalType}
}

// Next implements gms.RowIter.
func (w *widened) Next(ctx *gms.Context) (gms.Row, error) {
	row, err := w.RowIter.Next(ctx)
	if err != nil {
		return nil, err
	}
	row = row.Copy()
	for _, i := range w.columns {
		if row[i], _, err = w.to.Convert(ctx, row[i]); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// sortedByTypes returns the order of a set operation in which decimals have the types of its columns:
// go-mysql-server sorts by those of its first SELECT.
func sortedByTypes(ctx *gms.Context, n *plan.SetOp) gms.SortFields {
	columns := n.Schema(ctx)
	fields := append(gms.SortFields(nil), n.SortFields...)
	for i, f := range fields {
		g, ok := f.Column.(*expression.GetField)
		if ok && g.Index() >= 0 && g.Index() < len(columns) && types.IsDecimal(columns[g.Index()].Type) {
			fields[i].Column = expression.NewGetField(g.Index(), columns[g.Index()].Type, g.Name(), true)
		}
	}
	return fields
}
