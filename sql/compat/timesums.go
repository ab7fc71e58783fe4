package compat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server has no ADDTIME, SUBTIME, MAKEDATE and SEC_TO_TIME.

func init() {
	registerScalars(
		&scalar{"addtime", 2, 2, sumType, func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) { return timeSum(ctx, c, v, 1) }},
		&scalar{"subtime", 2, 2, sumType, func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) { return timeSum(ctx, c, v, -1) }},
		&scalar{"makedate", 2, 2, always(types.Date), madeDate},
		&scalar{"sec_to_time", 1, 1, always(types.Time), func(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
			seconds, err := doubleOf(ctx, v[0])
			return types.Timespan(boundedTime(ctx, seconds*1e6)), err
		}})
}

// greatestTime is the greatest TIME, in microseconds: 838:59:59.
const greatestTime = 3020399e6

// boundedTime returns a time in microseconds. If a TIME cannot hold it, boundedTime warns and
// returns the nearest that a TIME can.
func boundedTime(ctx *gms.Context, us float64) int64 {
	if math.Abs(us) > greatestTime {
		myerr.TruncatedTimeValue.Warn(ctx, textOfTime(int64(max(min(us, math.MaxInt64/2), math.MinInt64/2))))
	}
	return int64(math.Round(max(min(us, greatestTime), -greatestTime)))
}

// sumType returns the type of ADDTIME and SUBTIME: the type of the first argument if that is a time
// or a date with a time, otherwise text.
func sumType(ctx *gms.Context, args []gms.Expression) gms.Type {
	switch t := args[0].Type(ctx); {
	case row.IsTimespan(t):
		return types.Time
	case types.IsTime(t) && !types.IsDateType(t):
		return datetimeOf(mostDigits(ctx, args...))
	}
	return types.LongText
}

// timeSum computes ADDTIME or, with sign -1, SUBTIME.
func timeSum(ctx *gms.Context, c *scalarCall, v gms.Row, sign int64) (any, error) {
	add, ok := spanOf(ctx, v[1])
	if !ok {
		return nil, nil
	}
	typ := c.Type(ctx)
	if d, ok := dateOf(ctx, v[0]); ok {
		d = d.Add(time.Duration(sign*add) * time.Microsecond)
		if y := d.Year(); y < 0 || y > 9999 {
			return nil, nil
		}
		if typ != types.LongText {
			return d, nil
		}
		text := d.Format("2006-01-02 15:04:05")
		if us := d.Nanosecond() / 1000; us != 0 {
			text += fmt.Sprintf(".%06d", us)
		}
		return text, nil
	}
	span, ok := spanOf(ctx, v[0])
	if !ok {
		return nil, nil
	}
	us := boundedTime(ctx, float64(span+sign*add))
	if typ == types.LongText {
		return textOfTime(us), nil
	}
	return types.Timespan(us), nil
}

// dateOf reads a date, or a text that begins with one, as a date with a time.
func dateOf(ctx *gms.Context, v any) (time.Time, bool) {
	if _, isText := v.(string); isText && hasDate(v) {
		return readMoment(ctx, v)
	}
	d, ok := v.(time.Time)
	return d, ok
}

// spanOf reads a time, perhaps with days before it, and returns microseconds. If the value is not a
// time, spanOf warns and returns false. For a date it does not warn.
func spanOf(ctx *gms.Context, v any) (us int64, ok bool) {
	if _, isDate := v.(time.Time); isDate {
		return 0, false
	}
	days, rest := int64(0), v
	if text, isText := v.(string); isText {
		if day, clock, hasDays := strings.Cut(strings.TrimSpace(text), " "); hasDays {
			n, err := strconv.ParseInt(day, 10, 32)
			if err != nil {
				myerr.TruncatedTimeValue.Warn(ctx, v)
				return 0, false
			}
			days = n
			rest = clock
			if strings.HasPrefix(day, "-") {
				rest = "-" + clock
			}
		}
	}
	t, err := types.Time.ConvertToTimespan(rest)
	if err != nil {
		myerr.TruncatedTimeValue.Warn(ctx, v)
		return 0, false
	}
	return boundedTime(ctx, float64(days)*24*3600*1e6+float64(t.AsMicroseconds())), true
}

// textOfTime returns the text of a time in microseconds.
func textOfTime(us int64) string {
	sign := ""
	if us < 0 {
		sign, us = "-", -us
	}
	s := us / 1e6
	text := fmt.Sprintf("%s%02d:%02d:%02d", sign, s/3600, s/60%60, s%60)
	if us %= 1e6; us != 0 {
		text += fmt.Sprintf(".%06d", us)
	}
	return text
}

// madeDate computes MAKEDATE.
func madeDate(ctx *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
	year, err := wholeOf(ctx, v[0])
	if err != nil {
		return nil, err
	}
	day, err := wholeOf(ctx, v[1])
	if err != nil {
		return nil, err
	}
	switch {
	case year < 0 || year > 9999 || day < 1 || day > 10000*366:
		return nil, nil
	case year < 70:
		year += 2000
	case year < 100:
		year += 1900
	}
	d := time.Date(int(year), 1, int(day), 0, 0, 0, 0, time.UTC)
	if d.Year() > 9999 {
		return nil, nil
	}
	return d, nil
}
