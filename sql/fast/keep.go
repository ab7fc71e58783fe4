package fast

import (
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// forColumn returns a literal as its column takes it: for a column of whole numbers, a string that spells one is that
// number. PHP's programs, and dumps of theirs, write all values in quotes.
func forColumn(k *row.KeyCodec, v Value) Value {
	if v.IsNull || v.IsNumber || v.Form != plan.Plain || !k.IsInteger() {
		return v
	}
	if n, ok := spelled(v.Text); ok {
		return Value{Number: n, IsNumber: true}
	}
	return v
}

// spelled returns the whole number that a text spells, if it spells it as numbers are printed, and is equal to it
// also where MySQL compares the two as doubles.
func spelled(text string) (n int64, ok bool) {
	const digitsMax = 15
	digits := strings.TrimPrefix(text, "-")
	if len(digits) == 0 || len(digits) > digitsMax || digits[0] == '0' && text != "0" {
		return 0, false
	}
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// takes reports whether a literal is of a kind that the column may hold.
func takes(k *row.KeyCodec, v Value) bool {
	if v.IsNull {
		return k.Nullable
	}
	if isBytes(v) { // a column of another kind would convert them
		return k.Kind == catalog.KindBinary || k.Kind == catalog.KindVarbinary || k.Kind == catalog.KindBlob
	}
	return v.IsNumber == k.IsInteger()
}

// storedForm returns a literal in the column's stored form; false if the column would
// change it.
func storedForm(ctx *gms.Context, k *row.KeyCodec, v Value) (any, bool) {
	if v.IsNumber {
		return k.Whole(v.Number)
	}
	return k.Kept(ctx, v.Text)
}
