package compat

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"
)

// go-mysql-server's FROM_UNIXTIME rounds to whole seconds and shows six digits of a fraction, and
// its UNIX_TIMESTAMP does not read numbers as dates.

// unixSecondsMost is the last second that FROM_UNIXTIME knows: 3001-01-18 23:59:59 UTC.
const unixSecondsMost = 32536771199

// unixFunction returns FROM_UNIXTIME with one argument; with two it is the DATE_FORMAT of that.
func unixFunction(name string) (gms.Function, bool) {
	if name != "from_unixtime" {
		return nil, false
	}
	s := &scalar{name, 1, 1, unixType, fromUnixTime}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		if len(args) != 2 {
			return newScalarCall(s, args)
		}
		t, err := newScalarCall(s, args[:1])
		if err != nil {
			return nil, err
		}
		format, ok := boundedFunction("date_format")
		if !ok {
			format = BuiltIns["date_format"]
		}
		return format.NewInstance(ctx, []gms.Expression{t, args[1]})
	}}, true
}

// unixType is a DATETIME with as many digits after the second as the argument has.
func unixType(ctx *gms.Context, args []gms.Expression) gms.Type {
	if !types.IsNumber(args[0].Type(ctx)) {
		return types.DatetimeMaxPrecision
	}
	return datetimeOf(fractionDigits(ctx, args[0]))
}

// fromUnixTime computes FROM_UNIXTIME.
func fromUnixTime(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	seconds, err := decimalOf(ctx, v[0])
	if err != nil || seconds.Sign() < 0 || seconds.GreaterThanOrEqual(decimal.New(unixSecondsMost+1, 0)) {
		return nil, err
	}
	zone, err := function.SessionTimeZone(ctx)
	if err != nil {
		return nil, err
	}
	t := time.UnixMicro(seconds.Shift(6).Round(0).IntPart()).UTC()
	if t, ok := gms.ConvertTimeZone(t, "+00:00", zone); ok {
		return t, nil
	}
	return nil, gms.ErrInvalidTimeZone.New(zone)
}
