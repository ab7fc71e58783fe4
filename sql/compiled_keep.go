package sql

import (
	"strings"
	"time"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// takes reports whether a literal is of a kind that the column may hold.
func (k *keyCodec) takes(v Value) bool {
	if v.IsNull {
		return k.nullable
	}
	return v.IsNumber == k.isInteger()
}

// column returns a literal as the column keeps it, and false if it would not be
// the same.
func (k *keyCodec) column(ctx *gms.Context, v Value) (any, bool) {
	if v.IsNumber {
		return k.whole(v.Number)
	}
	return k.kept(ctx, v.Text)
}

// isDecimalText reports whether a text is a number with digits before its point, and
// digits behind it if it has one.
func isDecimalText(text string) bool {
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
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= 65
}

// kept returns a string as the column keeps it.
func (k *keyCodec) kept(ctx *gms.Context, text string) (any, bool) {
	switch k.kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindText:
		if k.collation.CharacterSet() != gms.CharacterSet_utf8mb4 || !utf8.ValidString(text) {
			return nil, false
		}
	case catalog.KindBinary, catalog.KindVarbinary, catalog.KindBlob:
	case catalog.KindDecimal:
		if _, part, _ := strings.Cut(text, "."); !isDecimalText(text) || len(part) > int(k.scale) {
			return nil, false // it may be rounded
		}
	case catalog.KindDatetime:
		if !isTimeText(text) {
			return nil, false
		}
	default:
		return nil, false
	}
	if k.kind == catalog.KindChar {
		text = strings.TrimRight(text, " ")
	}
	v, in, err := k.typ.Convert(ctx, text)
	return v, err == nil && in == gms.InRange
}
