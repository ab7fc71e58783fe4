package plan

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file makes a list of the rows of a subquery that a column is looked for in: it is read once for each
// execution, and then the column is compared as with a list of literals, by which an index is read.

// inSubquery returns the condition that a column is among the rows of a subquery, which uses no column of the
// query around; false if the condition is something else.
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

// isListOf reports whether IN compares values of a type with a column as = compares values of the column's type.
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

// listedBytes is about what a value of a list takes besides itself: what it is compared by, and its range of keys.
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

// hasList reports whether there is a list among the values.
func (c In) hasList() bool {
	for _, o := range c.Values {
		if o.IsList {
			return true
		}
	}
	return false
}

// Constants returns the values of operands, and of those that are lists all of the list, as Constant does, but
// for whole numbers of a list that the column cannot have.
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
