package compat

import (
	"slices"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/row"
)

// Where MySQL needs a number, it reads a date or time by its digits, 20240203 or -10203; where a
// date or time meets text, it uses its text. go-mysql-server uses the seconds since 1970 as a
// date's number, and has none for a TIME; for text it uses a date with a time of day, or fails.

// isToday reports whether an expression is CURDATE(), whose type is text in go-mysql-server.
func isToday(e gms.Expression) bool {
	_, ok := e.(function.CurrDate)
	return ok
}

func isOfTime(t gms.Type) bool { return types.IsTime(t) || row.IsTimespan(t) }

// An asDigits is the number that a date's or time's digits form.
type asDigits struct {
	expression.UnaryExpressionStub
	typ gms.Type
}

var (
	_ gms.Expression         = (*asDigits)(nil)
	_ gms.CollationCoercible = (*asDigits)(nil)
)

// newAsDigits returns the number that the digits of e form; e is a date or time. The number is an integer, or a decimal if
// the type of e says that there is a fraction. If e is a TIME that a function returns, the number is a double: in
// go-mysql-server, the type of such a TIME does not say how many digits its fraction has.
func newAsDigits(ctx *gms.Context, e gms.Expression) *asDigits {
	if isToday(e) {
		e = expression.NewConvert(e, expression.ConvertToDate)
	}
	typ := gms.Type(types.Int64)
	switch t := e.Type(ctx).(type) {
	case row.TimeType:
		if digits := t.Precision(); digits > 0 {
			typ = types.MustCreateDecimalType(uint8(7+digits), uint8(digits))
		}
	case gms.DatetimeType:
		if digits := t.Precision(); digits > 0 {
			typ = types.MustCreateDecimalType(uint8(14+digits), uint8(digits))
		}
	default:
		if row.IsTimespan(t) {
			typ = types.Float64
		}
	}
	return &asDigits{expression.UnaryExpressionStub{Child: e}, typ}
}

// Type implements gms.Expression.
func (d *asDigits) Type(*gms.Context) gms.Type { return d.typ }

// String implements gms.Expression.
func (d *asDigits) String() string { return d.Child.String() }

// CollationCoercibility implements gms.CollationCoercible.
func (*asDigits) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression.
func (d *asDigits) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := d.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	of := d.Child.Type(ctx)
	if text, isText := v.(string); isText { // CURTIME() returns a string
		if v, _, err = of.Convert(ctx, text); err != nil || v == nil {
			return nil, err
		}
	}
	switch t := v.(type) {
	case time.Time:
		v = digitsOfTime(t, types.IsDateType(of))
	case types.Timespan:
		v = digitsOfSpan(t.AsMicroseconds())
	}
	v, _, err = d.typ.Convert(ctx, v)
	return v, err
}

func digitsOfTime(t time.Time, isDate bool) decimal.Decimal {
	if t.Year() <= 0 {
		return decimal.Zero // 0000-00-00 has the number 0
	}
	year, month, day := t.Date()
	n := int64((year*100+int(month))*100 + day)
	if isDate {
		return decimal.NewFromInt(n)
	}
	h, m, s := t.Clock()
	n = n*1e6 + int64((h*100+m)*100+s)
	return decimal.NewFromInt(n).Add(decimal.New(int64(t.Nanosecond()/1000), -6))
}

func digitsOfSpan(us int64) decimal.Decimal {
	s := us / 1e6
	n := s/3600*10000 + s/60%60*100 + s%60
	return decimal.NewFromInt(n).Add(decimal.New(us%1e6, -6))
}

// WithChildren implements gms.Expression.
func (d *asDigits) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(d, len(children), 1)
	}
	return &asDigits{expression.UnaryExpressionStub{Child: children[0]}, d.typ}, nil
}

// ofNumbers are the functions that convert any argument to a number.
var ofNumbers = setOf("abs", "ceil", "ceiling", "floor", "format", "mod", "pow", "power", "round", "sign", "sqrt", "truncate")

// wantsDigits reports whether a conversion turns a date or time into a number.
func wantsDigits(ctx *gms.Context, e *expression.Convert) bool {
	return types.IsNumber(e.Type(ctx)) && (isOfTime(e.Child.Type(ctx)) || isToday(e.Child))
}

// withTimes returns an expression whose dates and times are converted to text or numbers; nil if
// it has none to convert.
func withTimes(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	switch e := e.(type) {
	case *expression.Convert:
		return newDateCast(ctx, e)
	case *gms.ColumnDefaultValue: // or the expression of a generated column
		if e == nil || e.OutType == nil || e.Expr == nil || !e.Expr.Resolved() || isText(e.Expr) || !wantsText(e.OutType, e.Expr.Type(ctx)) {
			return nil, nil
		}
		return e.WithChildren(ctx, newAsText(ctx, e.Expr))
	case *expression.Like, *like, *function.RegexpLike:
		return withTexts(ctx, e)
	case *expression.ConvertUsing:
		return usingText(ctx, e), nil
	case *aggregation.GroupConcat:
		return groupOfTexts(ctx, e)
	case *expression.Case:
		return caseOfTexts(ctx, e)
	case *function.If:
		return withSameTexts(ctx, e, 1)
	case *function.IfNull, *function.Coalesce:
		return withSameTexts(ctx, e, 0)
	case *expression.Arithmetic:
		if isInterval(e.LeftChild) || isInterval(e.RightChild) {
			return nil, nil
		}
		return withDigits(ctx, e, needsDigits)
	case *expression.Div, *expression.IntDiv, *expression.Mod, *expression.UnaryMinus, *ExactAggregate:
		return withDigits(ctx, e, isOfTime)
	}
	return nil, nil
}

// needsDigits reports whether values of a type must be replaced by their digits before
// go-mysql-server adds, subtracts or multiplies them. It uses the digits of a DATETIME by itself, but
// not those after the second, and computes with another number for a DATE or TIME.
func needsDigits(t gms.Type) bool {
	d, ok := t.(gms.DatetimeType)
	return row.IsTimespan(t) || types.IsDateType(t) || (ok && d.Precision() > 0)
}

func isText(e gms.Expression) bool {
	_, ok := e.(*asText)
	return ok
}

func isInterval(e gms.Expression) bool {
	_, ok := e.(*expression.Interval)
	return ok
}

// withDigits converts the children of an expression that have a wanted type to numbers, and
// returns nil if there are none.
func withDigits(ctx *gms.Context, e gms.Expression, wants func(gms.Type) bool) (gms.Expression, error) {
	children, isSame := slices.Clone(e.Children()), true
	for i, c := range children {
		if wants(c.Type(ctx)) || isToday(c) {
			children[i], isSame = newAsDigits(ctx, c), false
		}
	}
	if isSame {
		return nil, nil
	}
	return e.WithChildren(ctx, children...)
}

// withTexts converts the dates and times among the children of an expression to text, and
// returns nil if there are none.
func withTexts(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	children := slices.Clone(e.Children())
	if !textsOf(ctx, children) {
		return nil, nil
	}
	return e.WithChildren(ctx, children...)
}

// usingText returns our CONVERT ... USING, which converts numbers, dates and times to text first:
// go-mysql-server returns an empty text for them.
func usingText(ctx *gms.Context, c *expression.ConvertUsing) gms.Expression {
	switch of := c.Child.Type(ctx); {
	case isOfTime(of) || isElement(of):
		c = expression.NewConvertUsing(newAsText(ctx, c.Child), c.TargetCharSet)
	case types.IsNumber(of) || types.IsYear(of) || types.IsJSON(of):
		c = expression.NewConvertUsing(expression.NewConvert(c.Child, expression.ConvertToChar), c.TargetCharSet)
	}
	return recoded{c}
}

// mixed reports whether some results are dates or times and others are not: then MySQL
// converts all of them to text. go-mysql-server does so, too, for TIMEs of different digits.
func mixed(ctx *gms.Context, results []gms.Expression) bool {
	times, others := false, false
	var first gms.Type // that of the first TIME
	for _, e := range results {
		switch t := e.Type(ctx); {
		case row.IsTimespan(t) && first == nil:
			times, first = true, t
		case isOfTime(t):
			times, others = true, others || (row.IsTimespan(t) && !first.Equals(t))
		case t != types.Null && !types.IsDeferredType(t):
			others = true
		}
	}
	return times && others
}

// withSameTexts converts the arguments from first on, one of which the function returns, to text if
// dates or times are among values of other types. Otherwise it returns nil.
func withSameTexts(ctx *gms.Context, e gms.Expression, first int) (gms.Expression, error) {
	args := slices.Clone(e.Children())
	if !mixed(ctx, args[first:]) {
		return nil, nil
	}
	textsOf(ctx, args[first:])
	return e.WithChildren(ctx, args...)
}

// textsOf replaces the dates and times among expressions by texts, and reports whether there are
// any.
func textsOf(ctx *gms.Context, all []gms.Expression) (found bool) {
	for i, e := range all {
		if e != nil && isOfTime(e.Type(ctx)) {
			all[i], found = newAsText(ctx, e), true
		}
	}
	return found
}

// caseOfTexts is like withSameTexts, for a CASE.
func caseOfTexts(ctx *gms.Context, c *expression.Case) (gms.Expression, error) {
	results := resultsOf(c)
	if !mixed(ctx, results) {
		return nil, nil
	}
	textsOf(ctx, results)
	branches, last := slices.Clone(c.Branches), c.Else
	for i := range branches {
		branches[i].Value = results[i]
	}
	if last != nil {
		last = results[len(branches)]
	}
	return expression.NewCase(c.Expr, branches, last), nil
}

// groupOfTexts converts dates and times in a GROUP_CONCAT to text, and returns nil if it has
// none.
func groupOfTexts(ctx *gms.Context, g *aggregation.GroupConcat) (gms.Expression, error) {
	children, outputs := slices.Clone(g.Children()), len(g.OutputExpressions())
	if !textsOf(ctx, children[len(children)-outputs:]) { // the outputs are the last children
		return nil, nil
	}
	changed, err := g.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return changed.(*aggregation.GroupConcat).WithId(g.Id()).(gms.WindowAdaptableExpression).WithWindow(ctx, g.Window()), nil
}
