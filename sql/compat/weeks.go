package compat

import (
	"strconv"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's WEEK returns 0, or a week 53 that does not exist, for days that belong to a week
// of the year before or after.

func init() {
	registerScalars(
		&scalar{"week", 1, 2, always(types.Int64), func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
			day, ok := dayOf(ctx, v[0])
			if !ok {
				return ordinary(ctx, c, v)
			}
			mode, err := weekMode(ctx, v)
			_, week := weekOf(day, mode)
			return week, err
		}},
		&scalar{"yearweek", 1, 2, always(types.Int64), func(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
			day, ok := dayOf(ctx, v[0])
			if !ok {
				return ordinary(ctx, c, v)
			}
			mode, err := weekMode(ctx, v)
			year, week := weekOf(day, mode|weeksOfYear)
			return int64(year)*100 + week, err
		}})
}

// The bits of WEEK's mode.
const (
	mondayFirst = 1 // a week begins on Monday, not on Sunday
	weeksOfYear = 2 // days before a year's first week belong to the last week of the year before, not to week 0
	firstDay    = 4 // with mondayFirst, the first week begins with the year's first Monday, not with four days of the year; without mondayFirst it is the reverse
)

// weekMode returns the mode that a call states. It returns 0 if the call states NULL or no mode:
// default_week_format cannot be changed here.
func weekMode(ctx *gms.Context, v gms.Row) (int64, error) {
	if len(v) == 1 || v[1] == nil {
		return 0, nil
	}
	return wholeOf(ctx, v[1])
}

// weekOf returns the number of a day's week, and the year to which the week belongs.
func weekOf(day time.Time, mode int64) (year int, week int64) {
	byFirstDay := (mode&firstDay != 0) == (mode&mondayFirst != 0)
	year = day.Year()
	start := firstWeek(year, mode, byFirstDay)
	if day.Before(start) {
		if mode&weeksOfYear == 0 {
			return year, 0
		}
		year--
		start = firstWeek(year, mode, byFirstDay)
	} else if mode&weeksOfYear != 0 {
		if next := firstWeek(year+1, mode, byFirstDay); !day.Before(next) {
			year, start = year+1, next
		}
	}
	return year, int64(day.Sub(start)/(7*24*time.Hour)) + 1
}

// firstWeek returns the day on which the first week of a year begins. If byFirstDay is set, that is the
// first Sunday or Monday of the year; otherwise the first week is the one with at least four days in it.
func firstWeek(year int, mode int64, byFirstDay bool) time.Time {
	first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	begins := time.Sunday
	if mode&mondayFirst != 0 {
		begins = time.Monday
	}
	before := int(first.Weekday()-begins+7) % 7 // days in the week of the first day that belong to the year before
	if (byFirstDay && before > 0) || (!byFirstDay && before >= 4) {
		return first.AddDate(0, 0, 7-before)
	}
	return first.AddDate(0, 0, -before)
}

// dayOf reads the day of a date; false if the value is not a date, or in the year 0.
func dayOf(ctx *gms.Context, v any) (time.Time, bool) {
	if n, ok := row.Signed(v); ok {
		v = strconv.FormatInt(n, 10)
	}
	d, ok := v.(time.Time)
	if !ok {
		converted, _, err := types.DatetimeMaxPrecision.Convert(ctx, v)
		if d, ok = converted.(time.Time); err != nil || !ok {
			return d, false
		}
	}
	return time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, time.UTC), d.Year() > 0
}

// ordinary evaluates a call, whose arguments have the values v, with go-mysql-server's function.
func ordinary(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	args := make([]gms.Expression, len(v))
	for i, e := range c.ChildExpressions {
		args[i] = expression.NewLiteral(v[i], e.Type(ctx))
	}
	call, err := BuiltIns[c.name].NewInstance(ctx, args)
	if err != nil {
		return nil, err
	}
	return call.Eval(ctx, nil)
}
