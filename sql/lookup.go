package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// lookup executes a join's lookup of a value that no key can equal: it returns no
// rows. go-mysql-server would convert the value to the column's type, and the
// rounded value could equal a key. All other lookups are left to go-mysql-server.
func (b *builder) lookup(ctx *gms.Context, n *plan.IndexedTableAccess, row gms.Row) (gms.RowIter, error) {
	if n.IsStatic() {
		return nil, nil
	}
	x, ok := n.Index().(*store.Index)
	if !ok {
		return nil, nil
	}
	none, err := findsNone(ctx, n, x, row)
	if none && err == nil {
		return gms.RowsToRowIter(), nil
	}
	return nil, err
}

// findsNone reports whether a join looks up a value that no key of x can equal.
func findsNone(ctx *gms.Context, n *plan.IndexedTableAccess, x *store.Index, row gms.Row) (bool, error) {
	for i, e := range n.Expressions() {
		k := &x.Key.Codecs[i]
		if e.Type(ctx).Equals(k.Type) {
			continue
		}
		v, err := e.Eval(ctx, row)
		if err != nil {
			return false, err
		}
		if k.Unequal(ctx, v) {
			return true, nil
		}
	}
	return false, nil
}
