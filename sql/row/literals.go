package row

import (
	"strings"
	"time"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// This file determines which literals a column stores unchanged.

// TakesLiterals reports whether keys of this part can be made from literals without a
// conversion that rounds or fails.
func (k *KeyCodec) TakesLiterals() bool {
	if k.Prefix > 0 {
		return false
	}
	switch k.Kind {
	case catalog.KindChar, catalog.KindVarchar:
		return k.Weights != nil && k.Collation.CharacterSet() == gms.CharacterSet_utf8mb4
	case catalog.KindBinary, catalog.KindVarbinary:
		return true
	}
	return k.IsInteger()
}

// AsItIs reports whether the column would store text unchanged: a CHAR or VARCHAR if its characters
// are valid, a BINARY or VARBINARY if it is neither padded nor cut.
func (k *KeyCodec) AsItIs(text string) bool {
	switch k.Kind {
	case catalog.KindChar, catalog.KindVarchar:
		return utf8.ValidString(text)
	case catalog.KindBinary:
		return len(text) == k.Length
	case catalog.KindVarbinary:
		return len(text) <= k.Length
	}
	return false
}

// IsInteger reports whether the column holds whole numbers.
func (k *KeyCodec) IsInteger() bool {
	switch k.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64,
		catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64:
		return true
	}
	return false
}

// Whole returns a number in the column's Go type; false if it is out of range.
func (c *ValueCodec) Whole(n int64) (any, bool) {
	bits := IntBits[c.Kind]
	switch c.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32:
		if n < -1<<(bits-1) || n >= 1<<(bits-1) {
			return nil, false
		}
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32:
		if n < 0 || n >= 1<<bits {
			return nil, false
		}
	}
	switch c.Kind {
	case catalog.KindInt8:
		return int8(n), true
	case catalog.KindInt16:
		return int16(n), true
	case catalog.KindInt24, catalog.KindInt32:
		return int32(n), true
	case catalog.KindInt64:
		return n, true
	case catalog.KindUint8:
		return uint8(n), true
	case catalog.KindUint16:
		return uint16(n), true
	case catalog.KindUint24, catalog.KindUint32:
		return uint32(n), true
	case catalog.KindUint64:
		return uint64(n), n >= 0
	}
	return nil, false
}

// IntBits are the widths of the integer kinds.
var IntBits = map[catalog.Kind]uint{
	catalog.KindInt8: 8, catalog.KindInt16: 16, catalog.KindInt24: 24, catalog.KindInt32: 32, catalog.KindInt64: 64,
	catalog.KindUint8: 8, catalog.KindUint16: 16, catalog.KindUint24: 24, catalog.KindUint32: 32,
}

// IsDecimalText reports whether a text is a decimal number: digits, and perhaps a point followed by
// more digits.
func IsDecimalText(text string) bool {
	whole, part, hasPart := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	return isDigits(whole) && (!hasPart || isDigits(part))
}

// Moment returns the time that a text of the form 2006-01-02 15:04:05.999999 spells, and the number of the digits of its
// second's fraction, which it may lack; false for others, and for years below 1000.
func Moment(text string) (t time.Time, digits int, ok bool) {
	const most = len(time.DateTime + ".999999")
	if len(text) < len(time.DateTime) || len(text) > most || text[10] != ' ' || text[13] != ':' || text[16] != ':' {
		return t, 0, false
	}
	day, ok := date(text[:len(time.DateOnly)])
	hour, minute, second := number(text[11:13]), number(text[14:16]), number(text[17:19])
	if !ok || hour > 23 || minute > 59 || second > 59 || min(hour, minute, second) < 0 {
		return t, 0, false
	}
	micros := 0
	if fraction := text[len(time.DateTime):]; fraction != "" {
		digits = len(fraction) - 1
		if micros = number(fraction[1:]); fraction[0] != '.' || micros < 0 {
			return t, 0, false
		}
		for range 6 - digits {
			micros *= 10
		}
	}
	year, month, d := day.Date()
	return time.Date(year, month, d, hour, minute, second, micros*1000, time.UTC), digits, true
}

// date returns the date that a text of the form 2006-01-02 spells; false for others, and for years below 1000.
func date(text string) (t time.Time, ok bool) {
	if len(text) != len(time.DateOnly) || text[0] == '0' || text[4] != '-' || text[7] != '-' {
		return t, false
	}
	year, month, day := number(text[:4]), number(text[5:7]), number(text[8:])
	if min(year, month, day) < 0 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return t, t.Day() == day && int(t.Month()) == month
}

// number returns the number that digits spell; -1 for other texts.
func number(digits string) int {
	n := 0
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return -1
		}
		n = 10*n + int(digits[i]-'0')
	}
	if digits == "" {
		return -1
	}
	return n
}

// isDigits reports whether s consists of digits, and of no more than a decimal can have.
func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 65
}

// Kept returns a string in the column's stored form; false if the column would change it.
func (k *KeyCodec) Kept(ctx *gms.Context, text string) (any, bool) {
	switch k.Kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		if k.Collation.CharacterSet() != gms.CharacterSet_utf8mb4 || !utf8.ValidString(text) {
			return nil, false
		}
	case catalog.KindBinary, catalog.KindVarbinary, catalog.KindBlob:
	case catalog.KindDecimal:
		if _, part, _ := strings.Cut(text, "."); !IsDecimalText(text) || len(part) > int(k.Scale) {
			return nil, false // conversion may round the value
		}
	case catalog.KindDatetime:
		t, digits, ok := Moment(text)
		if !ok || digits <= int(k.Precision) {
			return t, ok
		}
	case catalog.KindDate:
		return date(text)
	default:
		return nil, false
	}
	if k.Kind == catalog.KindChar {
		text = strings.TrimRight(text, " ")
	}
	if (k.Kind == catalog.KindChar || k.Kind == catalog.KindVarchar) && utf8.RuneCountInString(text) <= k.Length {
		return text, true
	}
	v, in, err := convert(ctx, k.Type, text)
	return v, err == nil && in == gms.InRange
}

// Sums reports whether column base plus a literal can be assigned to this column: both columns are
// integers, or both are decimals and the literal is a text, which is how clients send decimals.
func (k *KeyCodec) Sums(base *KeyCodec) bool {
	if k.Kind == catalog.KindDecimal {
		return base.Kind == catalog.KindDecimal
	}
	return k.IsInteger() && base.IsInteger()
}
