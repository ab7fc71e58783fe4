package plan

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file turns IN of a subquery into IN of a list. The subquery's rows are read once for each
// execution. The column is then compared with them as with literals, so that an index can be used.

// inSubquery returns the condition that a column is among the rows of a subquery without Outers. It
// returns false for other expressions.
func (b *builder) inSubquery(e *gmsplan.InSubquery, s scope) (Condition, bool) {
	q, ok := e.Right().(*gmsplan.Subquery)
	if !ok || !q.Correlated().Empty() {
		return nil, false
	}
	column, ok := b.comparable(e.Left(), Equal, s)
	if !ok {
		return nil, false
	}
	v, err := b.scalar(q, scope{})
	if err != nil || len(v.args) > 0 || !isListOf(v.typ, s.codecs[column]) {
		return nil, false
	}
	o := b.compute(computed{expr: v})
	o.IsList = true
	b.computed[len(b.computed)-1].list = v.query
	return In{Column: column, Values: []Operand{o}}, true
}

// isListOf reports whether IN compares a column with values of a type as = compares it with values
// of the column's own type.
func isListOf(t gms.Type, k *row.KeyCodec) bool {
	switch {
	case k.IsInteger():
		return types.IsInteger(t)
	case row.IsCharacter(k.Kind):
		s, ok := t.(gms.StringType)
		return ok && types.IsTextOnly(t) && s.Collation() == k.Collation
	}
	switch k.Kind {
	case catalog.KindDecimal:
		return types.IsInteger(t) || types.IsDecimal(t)
	case catalog.KindDate:
		return types.IsDateType(t)
	case catalog.KindDatetime:
		return types.IsDatetimeType(t)
	}
	return false
}

// listedBytes is about the memory of a value in a list, besides the value: its encoding for
// comparisons, and its range of keys.
const listedBytes = 400

// list returns the values of a subquery's rows.
func (q *Subquery) list(ctx *gms.Context) (Value, error) {
	var all []Value
	err := q.each(ctx, func(row gms.Row) error {
		v, ok := computedValue(ctx, row[0])
		if !ok {
			return refused("a value of subquery %d", q.number)
		}
		all = append(all, v)
		return q.rows.Keep(store.RowMemory(row) + listedBytes)
	})
	return Value{List: &all}, err
}

// hasList reports whether one of the values is a list.
func (c In) hasList() bool {
	for _, o := range c.Values {
		if o.IsList {
			return true
		}
	}
	return false
}

// Constants returns the values of operands as Constant does, and all values of operands that are
// lists. It leaves out numbers of a list that the column cannot hold, since none equals them, and returns false for
// other values that Constant refuses.
func Constants(k *row.KeyCodec, operands []Operand, values []Value) ([]any, bool) {
	all := make([]any, 0, len(operands))
	for _, o := range operands {
		if !o.IsList {
			c, ok := constant(k, o, values)
			if !ok {
				return nil, false
			}
			all = append(all, c)
			continue
		}
		for _, v := range *values[o.At].List {
			c, ok := Constant(k, v)
			switch {
			case ok:
				all = append(all, c)
			case !v.IsNumber && v.Form != Decimal:
				return nil, false
			}
		}
	}
	return all, true
}
