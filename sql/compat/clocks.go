package compat

import (
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server has no UTC_DATE and UTC_TIME. Its UTC_TIMESTAMP always has six fractional digits.
// Its CURTIME is a text without any.

func init() {
	for _, name := range []string{"curtime", "current_time"} {
		registerScalars(&scalar{name, 0, 1, always(types.Time), currentTime})
	}
	registerScalars(
		&scalar{"utc_date", 0, 0, always(types.Date), func(ctx *gms.Context, _ *scalarCall, _ gms.Row) (any, error) {
			return ctx.QueryTime().UTC().Truncate(24 * time.Hour), nil
		}},
		&scalar{"utc_time", 0, 1, always(types.Time), func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
			return clockCut(ctx.QueryTime().UTC(), v)
		}},
		&scalar{"utc_timestamp", 0, 1, nowType, func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
			digits, err := digitsWanted(v)
			return cutFraction(ctx.QueryTime().UTC(), digits), err
		}})
}

// ofClock are the functions whose result depends on when they are called.
var ofClock = setOf("curtime", "current_time", "utc_date", "utc_time", "utc_timestamp")

// A clockCall is a call of a function in ofClock. CHECK constraints and generated columns refuse it.
type clockCall struct{ *scalarCall }

var _ gms.NonDeterministicExpression = (*clockCall)(nil)

// IsNonDeterministic implements gms.NonDeterministicExpression.
func (*clockCall) IsNonDeterministic() bool { return true }

// nowType returns a DATETIME with as many fractional digits as the only argument says.
func nowType(_ *gms.Context, args []gms.Expression) gms.Type {
	if len(args) == 0 {
		return types.Datetime
	}
	if l, ok := args[0].(*expression.Literal); ok {
		if digits, err := digitsWanted(gms.Row{l.Value()}); err == nil {
			return datetimeOf(digits)
		}
	}
	return types.DatetimeMaxPrecision
}

// digitsWanted returns how many fractional digits the argument of NOW and the like asks for.
func digitsWanted(args gms.Row) (int, error) {
	if len(args) == 0 {
		return 0, nil
	}
	n, ok := integerOf(args[0])
	if !ok || n.negative || n.size > fractionMost {
		return 0, function.ErrTooHighPrecision.New(args[0], "now", fractionMost)
	}
	return int(n.size), nil
}

// currentTime computes CURTIME.
func currentTime(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	now, ok := sessionNow(ctx)
	if !ok {
		return nil, nil
	}
	return clockCut(now, v)
}

// clockCut returns the time of day of t, with as many fractional digits as args ask for.
func clockCut(t time.Time, args gms.Row) (any, error) {
	digits, err := digitsWanted(args)
	return types.Timespan(clockOfDay(cutFraction(t, digits))), err
}
