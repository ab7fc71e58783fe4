package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// lookup executes a lookup of a join whose value no key can be equal to: it has
// no rows. go-mysql-server converts the value to the column's type first, and
// what is rounded then finds another key. Every other lookup is left to it.
func (b *builder) lookup(ctx *gms.Context, n *plan.IndexedTableAccess, row gms.Row) (gms.RowIter, error) {
	if n.IsStatic() {
		return nil, nil
	}
	x, ok := n.Index().(*store.Index)
	if !ok {
		return nil, nil
	}
	for i, e := range n.Expressions() {
		k := &x.Key.Codecs[i]
		if e.Type(ctx).Equals(k.Type) {
			continue
		}
		v, err := e.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		if k.Unequal(ctx, v) {
			return gms.RowsToRowIter(), nil
		}
	}
	return nil, nil
}
