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

// isTimeText reports whether a text is a date and a time of day, with up to six digits of
// a second's fraction.
func isTimeText(text string) bool {
	const most = len(time.DateTime + ".999999")
	_, err := time.Parse(time.DateTime, text)
	if err != nil || len(text) < len(time.DateTime) || len(text) > most || text[0] == '0' {
		return false
	}
	fraction := text[len(time.DateTime):]
	return fraction == "" || fraction[0] == '.' && isDigits(fraction[1:])
}

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
		if !isTimeText(text) {
			return nil, false
		}
	default:
		return nil, false
	}
	if k.Kind == catalog.KindChar {
		text = strings.TrimRight(text, " ")
	}
	v, in, err := k.Type.Convert(ctx, text)
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
