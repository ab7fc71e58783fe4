package executor

import (
	"context"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// A weighedType is a string type whose values are compared by a table of weights.
type weighedType struct {
	types.StringType
	weights *row.Weights
}

// Compare implements gms.Type.
func (t weighedType) Compare(ctx context.Context, a, b any) (int, error) {
	x, isTextA := a.(string)
	y, isTextB := b.(string)
	if isTextA && isTextB {
		if order, ok := t.weights.Compare(x, y); ok {
			return order, nil
		}
	}
	return t.StringType.Compare(ctx, a, b)
}

// weighed is an expression of a weighedType.
type weighed struct {
	gms.Expression
	typ gms.Type
}

// Type implements gms.Expression.
func (w weighed) Type(*gms.Context) gms.Type { return w.typ }

// Sort executes ORDER BY as go-mysql-server does, but compares strings by tables of
// weights. It returns nil if no string needs them.
func (x Executor) Sort(ctx *gms.Context, n *plan.Sort, r gms.Row) (gms.RowIter, error) {
	fields := append(gms.SortFields{}, n.SortFields...)
	text := false
	for i, f := range fields {
		if w := row.WeightsOfType(f.Column.Type(ctx)); w != nil {
			fields[i].Column = weighed{f.Column, weighedType{f.Column.Type(ctx).(types.StringType), w}}
			text = true
		}
	}
	if !text {
		return nil, nil
	}
	rows, err := x.Builder.Build(ctx, n.Child, r)
	if err != nil {
		return nil, err
	}
	return iters.NewSortIter(fields, rows), nil
}
