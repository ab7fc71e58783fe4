package compat

import (
	"strconv"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's STR_TO_DATE reads the digits of %f as a number of microseconds. For a year
// alone it returns the last day of November.

func init() {
	registerScalars(&scalar{"str_to_date", 2, 2, strToDateType, strToDate})
}

// Specifiers of a format that give the result a date, and those that give it a time.
const (
	ofDatePart = "aBbcDdejMmUuVvWwXxYy"
	ofTimePart = "fHhIiklprSsT"
)

// strToDateType returns DATE, TIME or DATETIME, depending on the format if that is a literal.
func strToDateType(_ *gms.Context, args []gms.Expression) gms.Type {
	l, ok := args[1].(*expression.Literal)
	if !ok {
		return types.DatetimeMaxPrecision
	}
	format, _ := row.Text(l.Value())
	hasDate, hasTime := hasSpecifier(format, ofDatePart), hasSpecifier(format, ofTimePart)
	switch {
	case hasDate && !hasTime:
		return types.Date
	case hasTime && !hasDate:
		return types.Time
	case hasSpecifier(format, "f"):
		return types.DatetimeMaxPrecision
	}
	return types.Datetime
}

// hasSpecifier reports whether a format has one of the specifiers.
func hasSpecifier(format string, specifiers string) bool {
	for i := 0; i+1 < len(format); i++ {
		if format[i] == '%' {
			if i++; strings.IndexByte(specifiers, format[i]) >= 0 {
				return true
			}
		}
	}
	return false
}

// strToDate computes STR_TO_DATE.
func strToDate(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	text, err := padText(ctx, v[0])
	if err != nil {
		return nil, err
	}
	format, err := padText(ctx, v[1])
	if err != nil {
		return nil, err
	}
	p := parsedDate{text: text, weekday: -1, week: -1}
	wanted := c.Type(ctx)
	t, ok := time.Time{}, p.parse(format)
	if isTime := row.IsTimespan(wanted); ok && isTime {
		return types.Timespan(p.clock()), nil
	}
	if ok {
		t, ok = p.date()
	}
	if !ok {
		myerr.NoDateInText.Warn(ctx, text)
		return nil, nil
	}
	return t.Add(time.Duration(p.clock()) * time.Microsecond), nil
}

// A parsedDate has the parts that STR_TO_DATE has read from a text, and the rest of the text.
type parsedDate struct {
	text                                  string
	year, month, day, yearDay             int
	hour, minute, second, us              int
	week, weekday                         int // -1 if not given
	weekFromMonday, weekOfYear, isHalfDay bool
	weekYear                              int
	afternoon                             int // hours to add: 0 or 12
}

// parse reads the text by a format. It returns false if the text does not fit the format, or the
// time is not possible. It leaves text behind the last part in p.text.
func (p *parsedDate) parse(format string) bool {
	if !p.read(format) {
		return false
	}
	if p.isHalfDay {
		if p.hour < 1 || p.hour > 12 {
			return false
		}
		p.hour = p.hour%12 + p.afternoon
	}
	return p.hour < 24 && p.minute < 60 && p.second < 60
}

// read reads the text by a format, which may be the expansion of a single specifier. If the text ends
// first, the rest of the format has no effect.
func (p *parsedDate) read(format string) bool {
	for i := 0; i < len(format); i++ {
		if p.text = strings.TrimLeft(p.text, " \t\n"); p.text == "" {
			break
		}
		switch f := format[i]; {
		case f == '%' && i+1 < len(format):
			if i++; !p.specifier(format[i]) {
				return false
			}
		case f == ' ' || f == '\t' || f == '\n':
		case p.text[0] != f:
			return false
		default:
			p.text = p.text[1:]
		}
	}
	return true
}

// specifier reads the part of the text that a specifier stands for.
func (p *parsedDate) specifier(f byte) (ok bool) {
	switch f {
	case 'Y':
		return p.readYear(4, &p.year)
	case 'y':
		return p.readYear(2, &p.year)
	case 'X', 'x':
		p.weekFromMonday = f == 'x'
		return p.readYear(4, &p.weekYear)
	case 'm', 'c':
		return p.number(2, &p.month)
	case 'd', 'e':
		return p.number(2, &p.day)
	case 'D':
		ok = p.number(2, &p.day)
		p.text = p.text[min(2, len(p.text)):] // st, nd, rd or th
		return ok
	case 'j':
		return p.number(3, &p.yearDay)
	case 'H', 'k':
		return p.number(2, &p.hour)
	case 'h', 'I', 'l':
		p.isHalfDay = true
		return p.number(2, &p.hour)
	case 'i':
		return p.number(2, &p.minute)
	case 'S', 's':
		return p.number(2, &p.second)
	case 'f':
		return p.fraction()
	case 'w':
		return p.number(1, &p.weekday) && p.weekday < 7
	case 'U', 'u', 'V', 'v':
		p.weekFromMonday, p.weekOfYear = f == 'u' || f == 'v', f == 'V' || f == 'v'
		return p.number(2, &p.week) && p.week <= 53
	case 'r':
		return p.read("%I:%i:%S %p")
	case 'T':
		return p.read("%H:%i:%S")
	}
	return p.word(f)
}

// word reads the name that a specifier stands for, or skips the characters that it skips; false if the text has
// something else.
func (p *parsedDate) word(f byte) bool {
	switch f {
	case 'M', 'b':
		return p.name(monthNames[:], f == 'b', &p.month, 1)
	case 'W', 'a':
		return p.name(dayNames[:], f == 'a', &p.weekday, 0)
	case 'p':
		if len(p.text) < 2 || !p.isHalfDay {
			return false
		}
		half := strings.ToUpper(p.text[:2])
		p.text = p.text[2:]
		p.afternoon = (12 * strings.Index("AMPM", half)) / 2 // the index of PM is 2
		return half == "AM" || half == "PM"
	case '.', '@', '#':
		p.text = strings.TrimLeftFunc(p.text, skipped[f])
		return true
	}
	p.text = strings.TrimPrefix(p.text, string(f))
	return f == '%'
}

// skipped maps specifiers to the characters that they skip.
var skipped = map[byte]func(rune) bool{
	'.': func(r rune) bool { return r < 0x80 && strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) },
	'@': func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' },
	'#': func(r rune) bool { return r >= '0' && r <= '9' },
}

var (
	monthNames = [...]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	dayNames   = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// name reads one of names, or its first three letters if isShort. It stores the name's index
// plus first in number.
func (p *parsedDate) name(names []string, isShort bool, number *int, first int) bool {
	for i, name := range names {
		if isShort {
			name = name[:3]
		}
		if len(p.text) >= len(name) && strings.EqualFold(p.text[:len(name)], name) {
			p.text, *number = p.text[len(name):], i+first
			return true
		}
	}
	return false
}

// digits takes up to most digits from the text.
func (p *parsedDate) digits(most int) (taken string) {
	n := 0
	for n < min(most, len(p.text)) && p.text[n] >= '0' && p.text[n] <= '9' {
		n++
	}
	taken, p.text = p.text[:n], p.text[n:]
	return taken
}

// number reads a number of up to most digits.
func (p *parsedDate) number(most int, number *int) bool {
	n, err := strconv.Atoi(p.digits(most))
	*number = n
	return err == nil
}

// readYear reads a year. A year of two digits is between 1970 and 2069.
func (p *parsedDate) readYear(most int, year *int) bool {
	text := p.digits(most)
	n, err := strconv.Atoi(text)
	if *year = n; len(text) <= 2 {
		if *year += 1900; n < 70 {
			*year += 100 // 0 to 69 are 2000 to 2069
		}
	}
	return err == nil
}

// fraction reads the fraction of a second, up to six digits.
func (p *parsedDate) fraction() bool {
	text := p.digits(fractionMost)
	n, err := strconv.Atoi((text + "000000")[:fractionMost])
	p.us = n
	return err == nil && text != ""
}

// clock returns the time in microseconds.
func (p *parsedDate) clock() int64 {
	return int64((p.hour*60+p.minute)*60+p.second)*1e6 + int64(p.us)
}

// date returns the day, or false if no such day exists. As with NO_ZERO_IN_DATE, no month or day may be 0.
func (p *parsedDate) date() (time.Time, bool) {
	switch {
	case p.yearDay > 0:
		return time.Date(p.year, 1, p.yearDay, 0, 0, 0, 0, time.UTC), p.year > 0 && p.yearDay <= 366
	case p.week >= 0 && p.weekday >= 0 && p.month == 0:
		return p.dayOfWeek()
	}
	t := time.Date(p.year, time.Month(p.month), p.day, 0, 0, 0, 0, time.UTC)
	return t, p.year > 0 && p.month > 0 && int(t.Month()) == p.month && p.day > 0 && t.Day() == p.day
}

// dayOfWeek returns the day given by a year, a week and a day of the week; false if the year is 0, or a week from 1 on is
// expected and is 0.
func (p *parsedDate) dayOfWeek() (time.Time, bool) {
	year := p.year
	if p.weekOfYear {
		year = p.weekYear
	}
	if year == 0 || (p.weekOfYear && p.week == 0) {
		return time.Time{}, false
	}
	first := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	// The days from the beginning of a week to the first of January, and to the wanted day.
	toFirst, toDay := int(first.Weekday()), p.weekday
	isFirst := toFirst == 0 // the week of January 1 is week 1
	if p.weekFromMonday {
		toFirst, toDay = (toFirst+6)%7, (p.weekday+6)%7
		isFirst = toFirst <= 3 // at least four days of the week are in the year
	}
	days := toDay - toFirst + 7*(p.week-1) // from January 1
	if !isFirst {
		days += 7
	}
	return first.AddDate(0, 0, days), true
}
