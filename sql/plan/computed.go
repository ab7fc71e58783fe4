package plan

import (
	"math"
	"slices"
	"strconv"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
)

// This file handles expressions without columns that are compared with a column. They are evaluated
// once for each execution. Their values are then treated like literals, so that an index can be
// used.

// value returns the operand for an expression that is compared with a column: a parameter, or the
// value of an expression without columns. It returns false for other expressions, and if the value
// is compared differently from the column's values.
func (b *builder) value(e gms.Expression, k *row.KeyCodec) (Operand, bool) {
	if o, ok := b.operand(e); ok {
		return o, true
	}
	if _, isLiteral := e.(*expression.Literal); isLiteral { // a NULL, or TRUE
		return Operand{}, false
	}
	shared := b.shared // b.expression clears it even if the expression is not used
	x, err := b.expression(e, scope{})
	if err == nil && isMoment(k) && isDateSum(e) && types.IsTextOnly(x.Type(b.ctx)) && !isOuter(b.ctx, x) {
		x = moment{x}
	}
	if err != nil || (!isComputable(b.ctx, x, k) && !isTextLike(b.ctx, x, k)) || isFiner(b.ctx, x, k) {
		b.shared = shared
		return Operand{}, false
	}
	b.shared = false
	return b.compute(computed{expr: x}), true
}

// A computed is a computed value of a statement. It is computed for each execution or, if it
// depends on the outer row, for each outer row.
type computed struct {
	expr gms.Expression
	// at is the value's number among the values of the execution.
	at int
	// list is the subquery whose rows are the value; nil for an expression.
	list *Subquery
	// within is the subquery whose Outers the value depends on; nil if it depends on none.
	within *Subquery
}

// compute registers a value to be computed, and returns its operand.
func (b *builder) compute(c computed) Operand {
	c.at = len(b.values) + len(b.computed)
	if isOuter(b.ctx, c.expr) {
		c.within = b.level.Subquery
	}
	b.computed = append(b.computed, c)
	return Operand{At: c.at}
}

// compute computes the value.
func (c *computed) compute(ctx *gms.Context, values []Value) (err error) {
	if c.list != nil {
		values[c.at], err = c.list.list(ctx)
		return err
	}
	x, err := c.expr.Eval(ctx, nil)
	if err != nil {
		return err
	}
	v, ok := computedValue(ctx, x)
	if ok && isTemporal(c.expr.Type(ctx)) {
		v, ok = v.moment()
	}
	if !ok {
		return refused("a value of %s", c.expr)
	}
	values[c.at] = v
	return nil
}

// isMoment reports whether a column is a date, or a date and time.
func isMoment(k *row.KeyCodec) bool {
	return k.Kind == catalog.KindDate || k.Kind == catalog.KindDatetime
}

// isDateSum reports whether an expression adds an interval to a date, or subtracts it. If the date
// is written as a text, such as DATE '2026-01-31', go-mysql-server gives the result the type of a
// text.
func isDateSum(e gms.Expression) bool {
	switch e := e.(type) {
	case *function.DateAdd, *function.DateSub:
		return true
	case *expression.Arithmetic:
		return slices.ContainsFunc(e.Children(), func(c gms.Expression) bool {
			_, ok := c.(*expression.Interval)
			return ok
		})
	}
	return false
}

// A moment is an expression whose values are dates with or without times, or their texts.
type moment struct{ gms.Expression }

// Type implements gms.Expression.
func (moment) Type(*gms.Context) gms.Type { return types.DatetimeMaxPrecision }

// isComputable reports whether the values of an expression are compared with a column as the
// literals are that Constant accepts.
func isComputable(ctx *gms.Context, e gms.Expression, k *row.KeyCodec) bool {
	t := e.Type(ctx)
	switch {
	case k.IsInteger():
		return types.IsInteger(t)
	case row.IsCharacter(k.Kind):
		_, coercibility := gms.GetCoercibility(ctx, e)
		s, ok := t.(gms.StringType)
		return ok && types.IsTextOnly(t) && s.CharacterSet() == gms.CharacterSet_utf8mb4 && coercibility > columnCoercibility && !hasBytes(ctx, e)
	}
	switch k.Kind {
	case catalog.KindDecimal:
		return types.IsInteger(t) || types.IsDecimal(t)
	case catalog.KindDate, catalog.KindDatetime:
		return isTemporal(t)
	case catalog.KindVarbinary:
		return types.IsText(t)
	}
	return false
}

// columnCoercibility is the coercibility of a column. A function of constants has a greater one, so
// the column's collation decides.
const columnCoercibility = 2

// Bind gives the query's parameters the values of a statement. It returns the values, with room for
// the computed values behind them. It returns false if go-mysql-server has to plan the statement
// for these values.
func (q *Query) Bind(values []Value) ([]Value, bool) {
	for _, p := range q.parameters {
		if !p.Bind(values) {
			return nil, false
		}
	}
	if len(q.computed) == 0 {
		return values, true
	}
	return append(append(make([]Value, 0, len(values)+len(q.computed)), values...), make([]Value, len(q.computed))...), true
}

// Compute computes the values for an execution, except those that depend on an outer row. The error is an ErrRefused if a
// Value cannot hold one.
func (q *Query) Compute(ctx *gms.Context, values []Value) error {
	for i := range q.computed {
		if c := &q.computed[i]; c.within == nil {
			if err := c.compute(ctx, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// computedValue returns the result of an expression as a Value; false if no form of Value can hold it.
func computedValue(ctx *gms.Context, x any) (Value, bool) {
	x, err := gms.UnwrapAny(ctx, x)
	if err != nil {
		return Value{}, false
	}
	if n, ok := row.Signed(x); ok {
		return Value{Number: n, IsNumber: true}, true
	}
	if n, ok := row.Unsigned(x); ok {
		return Value{Number: int64(n), IsNumber: true}, n <= math.MaxInt64
	}
	switch x := x.(type) {
	case nil:
		return Value{IsNull: true}, true
	case bool:
		return Value{Number: map[bool]int64{true: 1}[x], IsNumber: true}, true
	case string:
		return Value{Text: x}, true
	case []byte:
		return Value{Text: string(x), Form: Bytes}, true
	case decimal.Decimal:
		return Value{Text: x.String(), Form: Decimal}, true
	case time.Time:
		return Value{Number: x.UnixMicro(), Form: Moment}, x.Year() >= firstYear && x.Year() <= lastYear
	}
	return Value{}, false
}

func isTemporal(t gms.Type) bool {
	return types.IsDateType(t) || types.IsDatetimeType(t) || types.IsTimestampType(t)
}

// moment returns the value of an expression of type DATE or DATETIME as a Moment. A text becomes
// one if it has the form in which times are shown, because go-mysql-server's DATE() returns texts.
// For other texts moment returns false.
func (v Value) moment() (Value, bool) {
	if v.IsNull || v.Form == Moment {
		return v, true
	}
	for _, kind := range []catalog.Kind{catalog.KindDate, catalog.KindDatetime} {
		x, ok := Constant(&row.KeyCodec{ValueCodec: row.ValueCodec{Kind: kind}}, v)
		if t, isTime := x.(time.Time); ok && isTime {
			return Value{Number: t.UnixMicro(), Form: Moment}, true
		}
	}
	return Value{}, false
}

// Years outside of this range are read differently by go-mysql-server and MySQL.
const firstYear, lastYear = 1000, 9999

// class appends the properties of a value, besides its length, that determine the type of its
// literal: the types of operands determine how expressions are corrected.
func (v Value) class(dst []byte) []byte {
	switch {
	case v.IsNull:
		return append(dst, 'n')
	case v.IsNumber && types.IsUnsigned(wholeLiteral(v.Number).Typ):
		return append(dst, 'u')
	case v.IsNumber && v.Number != int64(int32(v.Number)):
		return append(dst, 'l')
	case v.IsNumber:
		return append(dst, 'i')
	case v.Form == Decimal:
		precision, scale := expression.GetDecimalPrecisionAndScale(v.Text)
		return append(strconv.AppendUint(append(strconv.AppendUint(append(dst, 'd'), uint64(precision), 10), '.'), uint64(scale), 10), ' ')
	}
	return append(dst, "s?fby"[v.Form]) // a letter for each Form; Decimal has returned above
}
