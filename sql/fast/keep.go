package fast

import (
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// forColumn returns a literal in the form in which its column takes it: for a column of integers, a
// string that spells an integer becomes that integer. PHP programs, and their dumps, write all
// values in quotes.
func forColumn(k *row.KeyCodec, v Value) Value {
	if v.IsNull || v.IsNumber || v.Form != plan.Plain || !k.IsInteger() {
		return v
	}
	if n, ok := spelled(v.Text); ok {
		return Value{Number: n, IsNumber: true}
	}
	return v
}

// spelled returns the integer that a text spells. The text must have the form in which integers are
// printed, and so few digits that comparing the two as doubles, as MySQL does, gives the same
// result.
func spelled(text string) (n int64, ok bool) {
	const digitsMax = 15
	digits := strings.TrimPrefix(text, "-")
	if len(digits) == 0 || len(digits) > digitsMax || (digits[0] == '0' && text != "0") {
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
