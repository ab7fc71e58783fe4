package compat

import (
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// This file reads values of any type as dates with times, as MySQL does. It reads numbers by their
// digits, and texts like numbers if they consist of digits. readtimes.go reads times.

// momentOf reads a value as a date with a time. A TIME is that time of today. If the value is not a
// date, momentOf warns and returns false.
func momentOf(ctx *gms.Context, v any) (time.Time, bool) {
	var ok bool
	var t time.Time
	switch v := v.(type) {
	case time.Time:
		t, ok = v, true
	case types.Timespan:
		var today time.Time
		today, ok = sessionNow(ctx)
		t = today.Truncate(24 * time.Hour).Add(time.Duration(v.AsMicroseconds()) * time.Microsecond)
	default:
		t, ok = readMoment(ctx, v)
	}
	if ok = ok && t.Year() > 0 && t.Year() <= 9999; !ok {
		myerr.IncorrectDatetime.Warn(ctx, v)
	}
	return t, ok
}

// readMoment reads a text or number as a date with a time; false if it spells none.
func readMoment(ctx *gms.Context, v any) (time.Time, bool) {
	if text, isText := row.Text(v); isText {
		if text = strings.TrimSpace(text); strings.Trim(text, "0123456789.") != "" {
			read, _, err := types.DatetimeMaxPrecision.Convert(ctx, text)
			t, ok := read.(time.Time)
			return t, ok && err == nil
		}
		v = text
	}
	n, err := types.InternalDecimalType.ConvertToNullDecimal(row.BoundedNumber(v))
	if err != nil || !n.Valid {
		return time.Time{}, false
	}
	return momentOfDigits(n.Decimal)
}

// momentOfDigits returns the date with a time that the digits of a number spell (TextOfDigits), with the number's fraction
// as that of a second; false if they spell none.
func momentOfDigits(n decimal.Decimal) (time.Time, bool) {
	if n.Sign() <= 0 || n.GreaterThanOrEqual(decimal.New(1, 14)) {
		return time.Time{}, false
	}
	text, layout := TextOfDigits(n.IntPart()), time.DateOnly
	if len(text) > len(layout) {
		layout = time.DateTime
	}
	t, err := time.Parse(layout, text)
	us := n.Sub(n.Truncate(0)).Shift(6).Round(0).IntPart()
	return t.Add(time.Duration(us) * time.Microsecond), err == nil
}

// clockOfDay returns the time of a date, in microseconds.
func clockOfDay(t time.Time) int64 {
	h, m, s := t.Clock()
	return int64((h*60+m)*60+s)*1e6 + int64(t.Nanosecond()/1000)
}

// hasDate reports whether a text or number that is read as a time begins with a date: it has more
// digits than a TIME has or, as a text, a hyphen after its first character, which may be a sign.
func hasDate(v any) bool {
	text, isText := row.Text(v)
	if !isText {
		n, err := types.InternalDecimalType.ConvertToNullDecimal(row.BoundedNumber(v))
		return err == nil && n.Valid && n.Decimal.GreaterThanOrEqual(decimal.New(1, 10))
	}
	text = strings.TrimSpace(text)
	if strings.LastIndexByte(text, '-') > 0 {
		return true
	}
	digits, _, _ := strings.Cut(text, ".")
	return len(digits) >= 12 && strings.Trim(digits, "0123456789") == ""
}

// sessionNow returns the time when the statement began, in the session's time zone but labelled UTC, and
// cut to microseconds. It returns false if the zone is not known.
func sessionNow(ctx *gms.Context) (time.Time, bool) {
	zone, err := function.SessionTimeZone(ctx)
	if err != nil {
		return time.Time{}, false
	}
	t, ok := gms.ConvertTimeZone(ctx.QueryTime(), gms.SystemTimezoneOffset(), zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000*1000, time.UTC), ok
}
