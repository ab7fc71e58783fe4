package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
)

// A filter returns the rows for which an expression is true.
type filter struct {
	gms.RowIter
	cond gms.Expression
}

// Next implements gms.RowIter.
func (f *filter) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := f.RowIter.Next(ctx)
		if err != nil {
			return nil, err
		}
		v, err := gms.EvaluateCondition(ctx, f.cond, row)
		if err != nil || gms.IsTrue(v) {
			return row, err
		}
	}
}
