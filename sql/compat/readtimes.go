package compat

import (
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server reads a text as a time only if the whole text is a time in one of the usual
// spellings, and never reads a number as a time. This file reads times as MySQL does.

// A clock is a time, or a date's time of day, in microseconds. It is between -838:59:59 and 838:59:59.
type clock int64

const (
	secondClock clock = 1e6
	minuteClock       = 60 * secondClock
	hourClock         = 60 * minuteClock
	clockMax          = 839*hourClock - secondClock
)

// clockOf reads a value as a time, in microseconds. Of a date with a time it takes the time of day.
// It warns if it cannot read the whole value. It returns false if the value does not begin with a
// time.
func clockOf(ctx *gms.Context, v any) (us int64, ok bool) {
	var c clock
	var reading reading
	switch v := v.(type) {
	case time.Time:
		return clockOfDay(v), true
	case types.Timespan:
		return v.AsMicroseconds(), true
	case string:
		c, reading = clockOfText(v)
	case []byte:
		c, reading = clockOfText(string(v))
	default:
		n, _, err := types.InternalDecimalType.Convert(ctx, row.BoundedNumber(v))
		if err != nil {
			return 0, false
		}
		c, reading = clockOfNumber(n.(decimal.Decimal))
	}
	if c > clockMax || c < -clockMax {
		c, reading = max(min(c, clockMax), -clockMax), partly
	}
	if reading != wholly {
		myerr.TruncatedTimeValue.Warn(ctx, v)
	}
	return int64(c), reading != unread
}

// A reading says which part of a value was a time.
type reading int

const (
	unread reading = iota
	partly
	wholly
)

// clockOfNumber reads a number, hhmmss or YYYYMMDDhhmmss.
func clockOfNumber(n decimal.Decimal) (clock, reading) {
	const least, datetimes = 1e7, 1e10 // numbers from least to datetimes are neither times nor dates with times
	whole, fraction := n.Abs().Truncate(0).IntPart(), clock(n.Abs().Mod(decimal.New(1, 0)).Shift(6).IntPart())
	if n.Abs().GreaterThanOrEqual(decimal.NewFromInt(least)) {
		switch {
		case n.IsNegative():
			return -clockMax - 1, partly // clockOf bounds it
		case n.LessThan(decimal.NewFromInt(datetimes)):
			return 0, unread
		}
		s := scanner{TextOfDigits(n.Truncate(0))}
		if s.rest == "" {
			return 0, unread
		}
		c, reading := s.timestamp()
		return c + fraction, reading
	}
	c, ok := clockOfDigits(whole)
	if !ok {
		return 0, unread
	}
	if c += fraction; n.IsNegative() {
		c = -c
	}
	return c, wholly
}

// clockOfDigits reads hhmmss. It returns false if the minutes or seconds exceed 59, or if there are too many digits.
func clockOfDigits(n int64) (clock, bool) {
	c, ok := newClock(n/10000, n/100%100, n%100)
	return c, ok && n < 1e10
}

// newClock returns the time of h hours, m minutes and s seconds; false if m or s exceeds 59.
func newClock(h, m, s int64) (clock, bool) {
	h = min(h, 1e6) // more would overflow
	return clock(h)*hourClock + clock(m)*minuteClock + clock(s)*secondClock, m < 60 && s < 60
}

// clockOfText reads [-][days ]hh:mm[:ss][.f], [-]hhmmss[.f], or the time of day of a date.
func clockOfText(text string) (clock, reading) {
	s := scanner{strings.Trim(text, " \t\r\n")}
	if s.isTimestamp() {
		return s.timestamp()
	}
	sign := clock(1)
	if s.takes('-') {
		sign = -1
	} else {
		s.takes('+')
	}
	s.rest = strings.TrimLeft(s.rest, " ")
	c, ok := s.time()
	switch {
	case !ok:
		return 0, unread
	case s.rest != "":
		return sign * c, partly
	}
	return sign * c, wholly
}

// A scanner reads a text from its beginning.
type scanner struct{ rest string }

// takes reports whether the byte b comes next, and then moves past it.
func (s *scanner) takes(b byte) bool {
	if s.rest == "" || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// digits returns the digits that come next.
func (s *scanner) digits() string {
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	digits := s.rest[:n]
	s.rest = s.rest[n:]
	return digits
}

// number returns the number that comes next, with an upper bound; false if no number comes.
func (s *scanner) number() (n int64, ok bool) {
	digits := s.digits()
	for _, d := range []byte(digits) {
		n = min(n*10+int64(d-'0'), 1e15)
	}
	return n, digits != ""
}

// numberAfter returns the number that comes next after the byte b. If they do not come next, it does not move.
func (s *scanner) numberAfter(b byte) (n int64, ok bool) {
	before := s.rest
	if s.takes(b) {
		n, ok = s.number()
	}
	if !ok {
		s.rest = before
	}
	return n, ok
}

// time reads [days ]hh:mm[:ss][.f], days hh[.f] or hhmmss[.f]; false if the text has no such form, or is no time.
func (s *scanner) time() (clock, bool) {
	first, ok := s.number()
	if !ok {
		return 0, false
	}
	var days int64
	hasDays := false
	if h, ok := s.numberAfter(' '); ok {
		days, first, hasDays = first, h, true
	}
	minute, hasMinute := s.numberAfter(':')
	second := int64(0)
	if hasMinute {
		second, _ = s.numberAfter(':')
	}
	c, ok := newClock(min(days, 1e6)*24+first, minute, second)
	if !hasMinute && !hasDays {
		c, ok = clockOfDigits(first)
	}
	return c + s.fraction(), ok
}

// fraction reads the fraction of a second; 0 if there is none.
func (s *scanner) fraction() clock {
	if !s.takes('.') {
		return 0
	}
	c := clock(0)
	digits := s.digits()
	for i := range 6 {
		c *= 10
		if i < len(digits) {
			c += clock(digits[i] - '0')
		}
	}
	return c
}

// isTimestamp reports, without moving, whether the text begins with a date: 12 or 14 digits, 8 digits and a T, or
// three numbers with hyphens or slashes between them. MySQL reads a date alone as the time
// 00:20:20. Here such a text is read as a date, because go-mysql-server may have made it from a
// date.
func (s scanner) isTimestamp() bool {
	switch n := len(s.digits()); {
	case n == 12 || n == 14:
		return s.rest == "" || s.rest[0] == '.'
	case n == 8 && s.takes('T'):
		return true
	case n == 0:
		return false
	}
	if s.rest == "" || (s.rest[0] != '-' && s.rest[0] != '/') {
		return false
	}
	s.rest = s.rest[1:]
	return s.digits() != "" && (s.takes('-') || s.takes('/')) && s.digits() != ""
}

// timestamp skips a date, and reads the time of day after it.
func (s *scanner) timestamp() (clock, reading) {
	if !s.date() {
		return 0, unread
	}
	if !s.takes('T') {
		s.rest = strings.TrimLeft(s.rest, " ")
	}
	c, ok := clock(0), true
	if s.rest != "" {
		if c, ok = s.timeOfDay(); !ok || c >= 24*hourClock {
			return 0, unread
		}
	}
	if s.rest != "" {
		return c, partly
	}
	return c, wholly
}

// timeOfDay reads hh[:mm[:ss]][.f] or hhmmss[.f]; false if the text has no such form, or is no time.
func (s *scanner) timeOfDay() (clock, bool) {
	if rest := *s; len(rest.digits()) > 2 {
		n, _ := s.number()
		c, ok := clockOfDigits(n)
		return c + s.fraction(), ok
	}
	hour, ok := s.number()
	if !ok {
		return 0, false
	}
	minute, _ := s.numberAfter(':')
	second, _ := s.numberAfter(':')
	c, ok := newClock(hour, minute, second)
	return c + s.fraction(), ok
}

// date reads a date, and reports whether such a day exists. In a text of twelve digits the year has two digits.
func (s *scanner) date() bool {
	if rest := *s; len(rest.digits()) >= 8 {
		end := 8 // of the date: YYYYMMDD
		if count := len(s.rest) - len(rest.rest); count == 12 {
			end = 6 // YYMMDD
		}
		day := scanner{s.rest[end-4 : end]} // MMDD
		n, _ := day.number()
		s.rest = s.rest[end:]
		return isDay(2000, n/100, n%100) // accepts the 29th of February, whatever the year
	}
	year, _ := s.number()
	s.rest = s.rest[1:]
	month, _ := s.number()
	s.rest = s.rest[1:]
	day, _ := s.number()
	return isDay(year, month, day)
}

// isDay reports whether a day exists; month and day may be 0, as in MySQL.
func isDay(year, month, day int64) bool {
	if month > 12 || day > 31 {
		return false
	}
	return month == 0 || day == 0 || time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC).Day() == int(day)
}
