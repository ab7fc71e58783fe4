package compat

import (
	"fmt"
	"math"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server has no MAKETIME, TO_SECONDS, PERIOD_ADD and PERIOD_DIFF, and no TIMESTAMP with
// two arguments. Its TIME and TIME_FORMAT read a TIME as a time of day.

func init() {
	registerScalars(
		&scalar{"time", 1, 1, always(types.Time), func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
			us, ok := clockOf(ctx, v[0])
			if !ok {
				return nil, nil
			}
			return types.Timespan(us), nil
		}},
		&scalar{"timestamp", 1, 2, timestampType, timestampOf},
		&scalar{"maketime", 3, 3, always(types.Time), madeTime},
		&scalar{"to_seconds", 1, 1, always(types.Int64), toSeconds},
		&scalar{"period_add", 2, 2, always(types.Int64), periodSum},
		&scalar{"period_diff", 2, 2, always(types.Int64), periodDifference})
}

// timestampType returns a DATETIME with as many fractional digits as the arguments have.
func timestampType(ctx *gms.Context, args []gms.Expression) gms.Type {
	return datetimeOf(mostDigits(ctx, args...))
}

// timestampOf computes TIMESTAMP: a date with a time, plus a time.
func timestampOf(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	t, ok := momentOf(ctx, v[0])
	if !ok || len(v) == 1 {
		return orNull(t, ok), nil
	}
	add, ok := clockOf(ctx, v[1])
	t = t.Add(time.Duration(add) * time.Microsecond)
	return orNull(t, ok && t.Year() > 0 && t.Year() <= 9999), nil
}

// orNull returns a time, or NULL if it is not valid.
func orNull(t time.Time, isValid bool) any {
	if !isValid {
		return nil
	}
	return t
}

// madeTime computes MAKETIME.
func madeTime(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	hours, err := wholeOf(ctx, v[0])
	if err != nil {
		return nil, err
	}
	minutes, err := wholeOf(ctx, v[1])
	if err != nil {
		return nil, err
	}
	seconds, err := decimalOf(ctx, v[2])
	if err != nil || minutes < 0 || minutes > 59 || seconds.Sign() < 0 || seconds.GreaterThanOrEqual(decimal.NewFromInt(60)) {
		return nil, err
	}
	us := float64(minutes*60*1e6 + seconds.Shift(6).Round(0).IntPart())
	if hours < 0 {
		us = -us
	}
	return types.Timespan(boundedTime(ctx, float64(hours)*3600e6+us)), nil
}

// toSeconds computes TO_SECONDS: the seconds since the year 0.
func toSeconds(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	const before1970 = 62167219200 // seconds from the year 0 to 1970
	t, ok := momentOf(ctx, v[0])
	if !ok {
		return nil, nil
	}
	return t.Unix() + before1970, nil
}

// periodSum computes PERIOD_ADD: a month, as YYMM or YYYYMM, plus a number of months.
func periodSum(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	months, err := monthsOf(ctx, "period_add", v[0])
	if err != nil {
		return nil, err
	}
	add, err := wholeOf(ctx, v[1])
	if err != nil {
		return nil, err
	}
	months += max(min(add, math.MaxInt32), math.MinInt32)
	if months <= 0 {
		return int64(0), nil
	}
	return months/12*100 + months%12 + 1, nil
}

// periodDifference computes PERIOD_DIFF: the number of months between two periods.
func periodDifference(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	a, err := monthsOf(ctx, "period_diff", v[0])
	if err != nil {
		return nil, err
	}
	b, err := monthsOf(ctx, "period_diff", v[1])
	return a - b, err
}

// monthsOf returns the months from the year 0 to a period, YYMM or YYYYMM.
func monthsOf(ctx *gms.Context, function string, v any) (int64, error) {
	period, err := wholeOf(ctx, v)
	if err != nil {
		return 0, err
	}
	year, month := period/100, period%100
	if period <= 0 || month < 1 || month > 12 {
		return 0, myerr.WrongArguments.New(function)
	}
	switch {
	case year < 70:
		year += 2000
	case year < 100:
		year += 1900
	}
	return year*12 + month - 1, nil
}

// timeFormatted computes TIME_FORMAT. If the format has a part of a date, the result is NULL.
func timeFormatted(ctx *gms.Context, args gms.Row) (any, error) {
	us, ok := clockOf(ctx, args[0])
	if !ok {
		return nil, nil
	}
	format, err := padText(ctx, args[1])
	if err != nil {
		return nil, err
	}
	var out []byte
	if us < 0 {
		out, us = append(out, '-'), -us
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out = append(out, format[i])
			continue
		}
		i++
		if out, ok = appendTimePart(out, us, format[i]); !ok {
			return nil, nil
		}
	}
	return string(out), nil
}

// appendTimePart appends the part that a specifier stands for; false if it is a part of a date.
func appendTimePart(out []byte, us int64, part byte) ([]byte, bool) {
	s := us / 1e6
	hour, minute, second := s/3600, s/60%60, s%60
	half := "AM"
	if hour%24 >= 12 {
		half = "PM"
	}
	switch part {
	case 'H':
		return fmt.Appendf(out, "%02d", hour), true
	case 'k':
		return fmt.Append(out, hour), true
	case 'h', 'I':
		return fmt.Appendf(out, "%02d", (hour+11)%12+1), true
	case 'l':
		return fmt.Append(out, (hour+11)%12+1), true
	case 'i':
		return fmt.Appendf(out, "%02d", minute), true
	case 'S', 's':
		return fmt.Appendf(out, "%02d", second), true
	case 'f':
		return fmt.Appendf(out, "%06d", us%1e6), true
	case 'p':
		return append(out, half...), true
	case 'r':
		return fmt.Appendf(out, "%02d:%02d:%02d %s", (hour+11)%12+1, minute, second, half), true
	case 'T':
		return fmt.Appendf(out, "%02d:%02d:%02d", hour, minute, second), true
	}
	return append(out, part), strings.IndexByte(ofDatePart, part) < 0
}
