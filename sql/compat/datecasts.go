package compat

import (
	"strconv"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's functions of dates do not read numbers as dates. Its CAST of a TIME to DATETIME
// is NULL. Its CAST to TIME keeps all fractional digits.

// A numberAsDate is an operand of a function of dates. It reads a number as a date with a time, and
// turns a TIME into that time of today. Other values stay as they are.
type numberAsDate struct{ expression.UnaryExpressionStub }

var (
	_ gms.Expression         = (*numberAsDate)(nil)
	_ gms.CollationCoercible = (*numberAsDate)(nil)
)

// Type implements gms.Expression. An INT is too small for a date with a time, so it is a DATE.
func (n *numberAsDate) Type(ctx *gms.Context) gms.Type {
	if t := n.Child.Type(ctx); types.IsInteger(t) && t != types.Int64 && t != types.Uint64 {
		return types.Date
	}
	return datetimeOf(fractionDigits(ctx, n.Child))
}

// String implements gms.Expression.
func (n *numberAsDate) String() string { return n.Child.String() }

// IsNullable implements gms.Expression.
func (*numberAsDate) IsNullable(*gms.Context) bool { return true }

// CollationCoercibility implements gms.CollationCoercible.
func (*numberAsDate) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression.
func (n *numberAsDate) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	v, err := n.Child.Eval(ctx, over)
	if err != nil || v == nil {
		return nil, err
	}
	switch v.(type) {
	case time.Time, string, []byte:
		return v, nil
	case types.Timespan:
		t, ok := momentOf(ctx, v)
		return orNull(t, ok), nil
	}
	if t, ok := readMoment(ctx, v); ok {
		return t, nil
	}
	return v, nil
}

// WithChildren implements gms.Expression.
func (n *numberAsDate) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(n, len(children), 1)
	}
	return &numberAsDate{expression.UnaryExpressionStub{Child: children[0]}}, nil
}

// ofDates maps functions to the number of their first arguments that are dates.
var ofDates = map[string]int{"adddate": 1, "convert_tz": 1, "date": 1, "date_add": 1, "date_format": 1, "date_sub": 1, "datediff": 2, "day": 1,
	"dayname": 1, "dayofmonth": 1, "dayofweek": 1, "dayofyear": 1, "last_day": 1, "month": 1, "monthname": 1, "quarter": 1, "subdate": 1,
	"to_days": 1, "week": 1, "weekday": 1, "weekofyear": 1, "year": 1, "yearweek": 1}

// movesTimes are the functions of ofDates that return a TIME for a TIME.
var movesTimes = setOf("adddate", "date_add", "date_sub", "subdate")

// dateFunction returns a function of dates that also reads numbers as dates.
func dateFunction(name string, ordinary gms.Function) gms.Function {
	dates := ofDates[name]
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		for i := range min(dates, len(args)) {
			if mayBeNumber(ctx, args[i]) && !(movesTimes[name] && row.IsTimespan(args[i].Type(ctx))) {
				args[i] = &numberAsDate{expression.UnaryExpressionStub{Child: args[i]}}
			}
		}
		return ordinary.NewInstance(ctx, args)
	}}
}

// mayBeNumber reports whether a value may be a number or a TIME that must be read as a date. The
// value of a parameter may be one.
func mayBeNumber(ctx *gms.Context, e gms.Expression) bool {
	if !e.Resolved() {
		return false
	}
	t := e.Type(ctx)
	return (types.IsNumber(t) && !types.IsYear(t)) || row.IsTimespan(t) || types.IsDeferredType(t)
}

// A timeCast is CAST AS TIME.
type timeCast struct {
	*expression.Convert
	digits int
}

// newDateCast returns the replacement of a CAST to a date or time; nil if the CAST needs none.
func newDateCast(ctx *gms.Context, c *expression.Convert) (gms.Expression, error) {
	switch c.Child.(type) {
	case expression.Tuple, *plan.Subquery: // the right side of an IN, which go-mysql-server casts itself
		return nil, nil
	}
	of := c.Child.Type(ctx)
	switch c.Type(ctx).(type) {
	case gms.DatetimeType:
		if row.IsTimespan(of) || (types.IsNumber(of) && !types.IsYear(of)) {
			return c.WithChildren(ctx, &numberAsDate{expression.UnaryExpressionStub{Child: c.Child}})
		}
		return nil, nil
	}
	if !row.IsTimespan(c.Type(ctx)) {
		return nil, nil
	}
	return &timeCast{c, castDigits(c)}, nil
}

// castDigits returns the number of fractional digits that a CAST AS TIME keeps. Only the text of the cast shows it.
func castDigits(c *expression.Convert) int {
	text := strings.TrimSuffix(c.String(), "))")
	digits, err := strconv.Atoi(text[strings.LastIndexByte(text, '(')+1:])
	if err != nil { // there are none: the text ends with "time)"
		return 0
	}
	return digits
}

// Eval implements gms.Expression.
func (c *timeCast) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	v, err := c.Child.Eval(ctx, over)
	if err != nil || v == nil {
		return nil, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return nil, err
	}
	us, ok := clockOf(ctx, v)
	if !ok {
		return nil, nil
	}
	rounded := (time.Duration(us) * time.Microsecond).Round(unitOfDigits(c.digits))
	return types.Timespan(boundedTime(ctx, float64(rounded.Microseconds()))), nil
}

// WithChildren implements gms.Expression.
func (c *timeCast) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := c.Convert.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &timeCast{e.(*expression.Convert), c.digits}, nil
}
