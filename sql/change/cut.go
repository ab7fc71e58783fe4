package change

import (
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// This file cuts values that do not fit into their column, in statements with IGNORE: texts to the column's length,
// negative numbers to the least value of an unsigned column, and decimals to the greatest value of a column of integers. go-mysql-server cuts
// bytes in place of characters, panics if the value is no text, in an UPDATE keeps the old text, takes negative numbers for great
// ones, and great decimals for less than they are.

// isCut reports whether IGNORE cuts values of a type.
func isCut(t gms.Type) bool { return types.IsText(t) || types.IsInteger(t) || types.IsUnsigned(t) }

// cut is like store.Assign, for a statement with IGNORE: it cuts the value to what the column can hold.
func cut(ctx *gms.Context, v any, t gms.Type, column string, at int) (any, error) {
	if types.IsDecimal(t) {
		return row.BoundedNumber(v), nil
	}
	if d, ok := v.(decimal.Decimal); ok && types.IsInteger(t) && !d.IsNegative() {
		return closestNumber(ctx, v, t, column, at)
	}
	if types.IsUnsigned(t) {
		return cutNegative(ctx, v, t, column, at), nil
	}
	text, ok := t.(gms.StringType)
	if !ok || v == nil || !isCut(t) {
		return v, nil
	}
	if _, _, err := t.Convert(ctx, v); !types.ErrLengthBeyondLimit.Is(err) {
		return v, nil // go-mysql-server reports other errors
	}
	whole, _, err := types.LongText.Convert(ctx, v)
	if err != nil {
		return nil, err
	}
	myerr.DataTruncated.Warn(ctx, column, at)
	if types.IsBinaryType(t) {
		return whole.(string)[:text.MaxByteLength()], nil
	}
	return firstCharacters(whole.(string), text), nil
}

// cutNegative returns a value for an unsigned column: 0 for a negative number.
func cutNegative(ctx *gms.Context, v any, t gms.Type, column string, row int) any {
	n := numberOf(ctx, v)
	if n >= 0 {
		return v
	}
	if n <= -0.5 { // others are rounded to 0
		myerr.ColumnOutOfRange.Warn(ctx, column, row)
	}
	return t.Zero()
}

// numberOf returns the number that a value is, or that its text begins with; 0 if there is none.
func numberOf(ctx *gms.Context, v any) float64 {
	f, _, err := types.Float64.Convert(ctx, v)
	if n, ok := f.(float64); ok && err == nil {
		return n
	}
	return 0
}

// firstCharacters returns as many characters of a text as fit into a type.
func firstCharacters(s string, t gms.StringType) string {
	bytes, characters := t.MaxByteLength(), t.MaxCharacterLength()
	if t.Type() == sqltypes.Text { // TINYTEXT to LONGTEXT are limited in bytes alone
		characters = bytes
	}
	end := 0
	for ; end < len(s) && characters > 0; characters-- {
		_, size := utf8.DecodeRuneInString(s[end:])
		if int64(end+size) > bytes {
			break
		}
		end += size
	}
	return s[:end]
}
