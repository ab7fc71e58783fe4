package row

import (
	"math"
	"strconv"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
)

// This file sends stored integers and texts to clients without decoding them into Go values.

// IsDirect reports whether a column's values are integers, or characters that are stored
// as they are sent.
func (c *ValueCodec) IsDirect() bool {
	switch c.Kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		s, ok := c.Type.(types.StringType)
		return ok && s.Collation().CharacterSet() == gms.CharacterSet_utf8mb4
	}
	return c.IsSigned() || c.IsUnsigned()
}

// IsSigned reports whether the column holds integers with a sign.
func (c *ValueCodec) IsSigned() bool {
	switch c.Kind {
	case catalog.KindInt8, catalog.KindInt16, catalog.KindInt24, catalog.KindInt32, catalog.KindInt64:
		return true
	}
	return false
}

// IsUnsigned reports whether the column holds unsigned integers.
func (c *ValueCodec) IsUnsigned() bool {
	switch c.Kind {
	case catalog.KindUint8, catalog.KindUint16, catalog.KindUint24, catalog.KindUint32, catalog.KindUint64:
		return true
	}
	return false
}

// IsSound reports whether stored bytes can be a value: an integer has at most eight.
func (c *ValueCodec) IsSound(b []byte) bool {
	return len(b) <= 8 || (!c.IsSigned() && !c.IsUnsigned())
}

// AppendText appends a stored value in the form sent to the client.
func (c *ValueCodec) AppendText(dst, b []byte) []byte {
	switch {
	case c.IsSigned():
		n, _ := ReadInt(b)
		return strconv.AppendInt(dst, n, 10)
	case c.IsUnsigned():
		n, _ := ReadUint(b)
		return strconv.AppendUint(dst, n, 10)
	}
	return append(dst, b...)
}

// IsSummed reports whether a column's values can be added up one by one as int64.
func (c *ValueCodec) IsSummed() bool {
	return c.IsSigned() || (c.IsUnsigned() && c.Kind != catalog.KindUint64)
}

// AppendResult is like AppendText, for further kinds of values, which it prints as the column's type does. It returns
// false for the other kinds.
func (c *ValueCodec) AppendResult(dst, b []byte) ([]byte, bool) {
	switch c.Kind {
	case catalog.KindDecimal:
		n, ok := ReadInt(b)
		if !ok || n == math.MinInt64 {
			return dst, false
		}
		return appendUnits(dst, n, int(c.Scale)), true
	case catalog.KindDate, catalog.KindDatetime:
		n, ok := ReadInt(b)
		if !ok {
			return dst, false
		}
		return c.appendTime(dst, n)
	}
	if !c.IsDirect() || !c.IsSound(b) {
		return dst, false
	}
	return c.AppendText(dst, b), true
}

// appendUnits appends a number of units of 10^-scale.
func appendUnits(dst []byte, n int64, scale int) []byte {
	if n < 0 {
		dst, n = append(dst, '-'), -n
	}
	var room [24]byte
	digits := strconv.AppendInt(room[:0], n, 10)
	if scale == 0 {
		return append(dst, digits...)
	}
	whole := max(0, len(digits)-scale)
	if whole == 0 {
		dst = append(dst, '0')
	}
	dst = append(append(dst, digits[:whole]...), '.')
	for range scale - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits[whole:]...)
}

// appendTime appends a date, or a date and time without fractions of seconds; false for other times and
// for years that have not four digits.
func (c *ValueCodec) appendTime(dst []byte, micros int64) ([]byte, bool) {
	t := time.UnixMicro(micros).UTC()
	year, month, day := t.Date()
	if year < 1000 || year > 9999 {
		return dst, false
	}
	if c.Kind == catalog.KindDatetime {
		if typ, ok := c.Type.(gms.DatetimeType); !ok || typ.Precision() > 0 {
			return dst, false
		}
	}
	dst = appendDay(dst, year, month, day)
	if c.Kind == catalog.KindDatetime {
		dst = appendClock(append(dst, ' '), t)
	}
	return dst, true
}

// appendDay appends a date whose year has four digits.
func appendDay(dst []byte, year int, month time.Month, day int) []byte {
	dst = appendTwo(appendTwo(dst, year/100), year%100)
	dst = appendTwo(append(dst, '-'), int(month))
	return appendTwo(append(dst, '-'), day)
}

// appendClock appends a time of day without the fraction of its second.
func appendClock(dst []byte, t time.Time) []byte {
	hour, minute, second := t.Clock()
	dst = appendTwo(dst, hour)
	dst = appendTwo(append(dst, ':'), minute)
	return appendTwo(append(dst, ':'), second)
}

// appendTwo appends a number as two digits.
func appendTwo(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }
