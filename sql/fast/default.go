package fast

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A columnDefault is the value that an INSERT gives to a column that it leaves out, or for which it
// says DEFAULT. It is a literal or, if now is set, the time of the statement.
type columnDefault struct {
	column int
	codec  *row.KeyCodec
	value  Value
	now    bool
}

// defaultOf returns a column's default; false if it has none, or one that is neither a plain literal nor the time of the
// statement. Literals of times depend on settings.
func defaultOf(info *store.TableInfo, at int) (d columnDefault, ok bool) {
	c := &info.Columns[at]
	d = columnDefault{column: at, codec: info.Codec(at)}
	switch {
	case c.Default == "" || strings.EqualFold(c.Default, "NULL"):
		d.value.IsNull = true
		return d, c.Nullable
	case strings.EqualFold(c.Default, "CURRENT_TIMESTAMP"):
		d.now = true
		return d, takesNow(d.codec)
	case d.codec.Kind == catalog.KindDatetime:
		return d, false
	}
	var n normaliser
	switch isString := n.add(c.Default) && string(n.key) == "?" && !n.values[0].IsNumber && n.values[0].Form == plan.Plain; {
	case isString:
		d.value = n.values[0]
	case row.IsDecimalText(c.Default):
		d.value.Text = c.Default
	default:
		return d, false
	}
	d.value = forColumn(d.codec, d.value)
	return d, takes(d.codec, d.value)
}

// stored returns the default in the column's stored form; false if the column would change it.
func (d *columnDefault) stored(ctx *gms.Context, now *statementTime) (any, bool) {
	switch {
	case d.value.IsNull:
		return nil, true
	case d.now:
		return now.stored(ctx, d.codec)
	}
	return storedForm(ctx, d.codec, d.value)
}

// A statementTime caches the result of NOW() in a statement.
type statementTime struct{ value any }

// takesNow reports whether a column stores the time of a statement as it is.
func takesNow(k *row.KeyCodec) bool {
	return k.Kind == catalog.KindDatetime || k.Kind == catalog.KindTimestamp
}

// stored returns the time in a column's stored form; false if there is none, and go-mysql-server
// has to report the error.
func (n *statementTime) stored(ctx *gms.Context, k *row.KeyCodec) (any, bool) {
	if n.value == nil {
		now, err := function.NewNow(ctx)
		if err != nil {
			return nil, false
		}
		if n.value, err = now.Eval(ctx, nil); err != nil {
			return nil, false
		}
	}
	v, in, err := k.Type.Convert(ctx, n.value)
	return v, err == nil && in == gms.InRange
}
