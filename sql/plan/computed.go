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

// This file computes the values of a statement that are expressions without columns: they are evaluated
// once for each execution, and are then values as literals are, by which an index is read.

// value returns the operand that an expression is which is compared with a column: a parameter, or the
// value of an expression without columns; false if it is none, or is not compared as values of the
// column's type are.
func (b *builder) value(e gms.Expression, k *row.KeyCodec) (Operand, bool) {
	if o, ok := b.operand(e); ok {
		return o, true
	}
	if _, isLiteral := e.(*expression.Literal); isLiteral { // a NULL, or TRUE
		return Operand{}, false
	}
	shared := b.shared
	x, err := b.expression(e, scope{})
	if err == nil && isMoment(k) && isDateSum(e) && types.IsTextOnly(x.Type(b.ctx)) && !isOuter(b.ctx, x) {
		x = moment{x}
	}
	if err != nil || !isComputable(b.ctx, x, k) && !isTextLike(b.ctx, x, k) || isFiner(b.ctx, x, k) {
		b.shared = shared
		return Operand{}, false
	}
	b.shared = false
	return b.compute(computed{expr: x}), true
}

// A computed is a value of a statement that is computed: for each execution or, if it depends on the row
// around a subquery, for each of those.
type computed struct {
	expr gms.Expression
	// at is the value's number.
	at int
	// list is set if it is the list of a subquery's rows.
	list *Subquery
	// within is the subquery whose Outers it depends on, nil if there is none.
	within *Subquery
}

// compute notes a value to be computed, and returns its operand.
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

// isDateSum reports whether an expression is the sum of a date and an interval. If the date is written as a text, as
// DATE '2026-01-31' is, go-mysql-server's type of the sum is a text, too.
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

// A moment is an expression whose values are dates, or dates and times, or texts that are such.
type moment struct{ gms.Expression }

// Type implements gms.Expression.
func (moment) Type(*gms.Context) gms.Type { return types.DatetimeMaxPrecision }

// isComputable reports whether the values of an expression are compared with a column as literals are
// that Constant admits.
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

// columnCoercibility is the coercibility of a column: its collation decides beside that of a function of
// constants, whose coercibility is greater.
const columnCoercibility = 2

// Bind gives the query's expressions the values of a statement, and returns these with room for those
// that are computed behind them; false if go-mysql-server has to plan the statement for them.
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

// Compute computes the values of an execution. The error is an ErrRefused if one is not plain.
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

// computedValue returns what an expression has evaluated to as a Value; false if it is of a kind that
// Values are not.
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

// moment returns the value of an expression whose type is a date or a date and time as a Moment:
// go-mysql-server's DATE() returns texts. It returns false for other texts than times are shown as.
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

// The years of moments that go-mysql-server and MySQL understand alike.
const firstYear, lastYear = 1000, 9999

// class appends what the type of a value's literal depends on, besides its length: expressions are
// corrected for the types of their operands.
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
	return append(dst, "s?fby"[v.Form])
}
