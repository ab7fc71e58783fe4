package compat

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's FROM_UNIXTIME rounds to whole seconds and shows six fractional digits. Its
// UNIX_TIMESTAMP does not read numbers as dates, and reads the local time of a TIMESTAMP as UTC.

// unixSecondsMost is the last second that FROM_UNIXTIME knows: 3001-01-18 23:59:59 UTC.
const unixSecondsMost = 32536771199

// unixFunction returns FROM_UNIXTIME with one argument. With two arguments it is DATE_FORMAT of the result.
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

// unixType returns a DATETIME with as many fractional digits as the argument has.
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

// A unixTimestamp is UNIX_TIMESTAMP. It knows which instants the values of a TIMESTAMP stand for.
type unixTimestamp struct{ *function.UnixTimestamp }

func newUnixTimestamp(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
	e, err := function.NewUnixTimestamp(ctx, args...)
	if err != nil {
		return nil, err
	}
	u, ok := e.(*function.UnixTimestamp)
	if !ok || u.Date == nil {
		return e, nil
	}
	return &unixTimestamp{u}, nil
}

// Type implements gms.Expression. It is an integer if there are no fractional digits.
func (u *unixTimestamp) Type(ctx *gms.Context) gms.Type {
	if digits := fractionDigits(ctx, u.Date); digits > 0 {
		return types.MustCreateDecimalType(19, uint8(digits))
	}
	return types.Int64
}

// Eval implements gms.Expression.
func (u *unixTimestamp) Eval(ctx *gms.Context, values gms.Row) (any, error) {
	v, err := u.seconds(ctx, values)
	if err != nil || v == nil {
		return nil, err
	}
	v, _, err = u.Type(ctx).Convert(ctx, v)
	return v, err
}

// seconds returns the seconds since 1970; nil for NULL. It computes those of a TIMESTAMP itself, and leaves
// other values, and 0000-00-00, to go-mysql-server's function.
func (u *unixTimestamp) seconds(ctx *gms.Context, values gms.Row) (any, error) {
	if !types.IsTimestampType(u.Date.Type(ctx)) {
		return u.UnixTimestamp.Eval(ctx, values)
	}
	v, err := u.Date.Eval(ctx, values)
	t, ok := v.(time.Time)
	if err != nil || !ok {
		return nil, err
	}
	if t.Equal(types.ZeroTime) {
		return u.UnixTimestamp.Eval(ctx, values)
	}
	name, err := function.SessionTimeZone(ctx)
	if err != nil {
		return nil, err
	}
	zone, ok := row.ZoneOf(name)
	if !ok {
		return nil, gms.ErrInvalidTimeZone.New(name)
	}
	return decimal.New(zone.Instant(t).UnixMicro(), -6), nil
}

// WithChildren implements gms.Expression.
func (u *unixTimestamp) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	return newUnixTimestamp(ctx, children...)
}
