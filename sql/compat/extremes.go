package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's GREATEST and LEAST fail for TIMEs, read a date beside text as 0, and give a
// DATETIME six fractional digits.

// timesFunction returns GREATEST or LEAST. If an argument is a date or time, it uses our function.
func timesFunction(name string, ordinary gms.Function) gms.Function {
	s := &scalar{name, 1, 1 << 16, extremeType, func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
		return extreme(ctx, c, v, name == "greatest")
	}}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		if slices.ContainsFunc(args, func(e gms.Expression) bool { return e.Resolved() && isOfTime(e.Type(ctx)) }) {
			return newScalarCall(s, args)
		}
		return ordinary.NewInstance(ctx, args)
	}}
}

// extremeType returns TIME or DATE if all arguments have that type, DATETIME if all are dates, with
// times or without, otherwise text.
func extremeType(ctx *gms.Context, args []gms.Expression) gms.Type {
	all := func(is func(gms.Type) bool) bool {
		return !slices.ContainsFunc(args, func(e gms.Expression) bool {
			t := e.Type(ctx)
			return t != types.Null && !is(t)
		})
	}
	switch {
	case all(row.IsTimespan):
		return types.Time
	case all(types.IsDateType):
		return types.Date
	case all(types.IsTime):
		return datetimeOf(mostDigits(ctx, args...))
	}
	return types.LongText
}

// extreme returns the greatest or the least of values. If an argument is a date, it compares all as
// dates; otherwise it compares all as times. If it cannot read one of them so, it returns NULL.
func extreme(ctx *gms.Context, c *scalarCall, v gms.Row, isGreatest bool) (any, error) {
	typ, best := c.Type(ctx), 0
	placeOf := momentPlace
	if !slices.ContainsFunc(c.ChildExpressions, func(e gms.Expression) bool { return types.IsTime(e.Type(ctx)) }) {
		placeOf = clockOf
	}
	var bestPlace int64 // the place of the best value in the order
	for i := range v {
		place, ok := placeOf(ctx, v[i])
		if !ok {
			return nil, nil
		}
		if i == 0 || (place != bestPlace && (place > bestPlace) == isGreatest) {
			best, bestPlace = i, place
		}
	}
	if typ == types.LongText {
		return textIn(ctx, c.ChildExpressions[best], v[best])
	}
	out, _, err := typ.Convert(ctx, v[best])
	return out, err
}

// momentPlace returns the place of a value in the order of dates with times.
func momentPlace(ctx *gms.Context, v any) (int64, bool) {
	t, ok := momentOf(ctx, v)
	return t.UnixMicro(), ok
}

// textIn returns a value of an expression as text.
func textIn(ctx *gms.Context, e gms.Expression, v any) (any, error) {
	if !isOfTime(e.Type(ctx)) {
		text, _, err := types.LongText.Convert(ctx, v)
		return text, err
	}
	return newAsText(ctx, &argument{Expression: e}).Eval(ctx, gms.Row{v})
}
