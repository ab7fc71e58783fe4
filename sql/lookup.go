package sql

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"
)

// lookup executes a lookup of a join whose value no key can be equal to: it has
// no rows. go-mysql-server converts the value to the column's type first, and
// what is rounded then finds another key. Every other lookup is left to it.
func (b *builder) lookup(ctx *gms.Context, n *plan.IndexedTableAccess, row gms.Row) (gms.RowIter, error) {
	if n.IsStatic() {
		return nil, nil
	}
	x, ok := n.Index().(*index)
	if !ok {
		return nil, nil
	}
	for i, e := range n.Expressions() {
		k := &x.key.parts[i]
		if e.Type(ctx).Equals(k.typ) {
			continue
		}
		v, err := e.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		if k.unequal(ctx, v) {
			return gms.RowsToRowIter(), nil
		}
	}
	return nil, nil
}

// unequal reports whether no value of the column is equal to one of another
// type, for types whose conversion may round or fail.
func (k *keyCodec) unequal(ctx *gms.Context, v any) bool {
	switch s := v.(type) {
	case decimal.Decimal, float32, float64, time.Time:
	case string:
		if !k.isNumber() {
			return false
		}
		// As MySQL compares a string with a number, by what it begins with.
		f, _, err := types.Float64.Convert(ctx, s)
		if err != nil && !gms.ErrTruncatedIncorrect.Is(err) {
			return false
		}
		v = f
	default:
		return false
	}
	c, _, err := k.typ.Convert(ctx, v)
	return err != nil || c != nil && !k.same(ctx, v, c)
}
