package fast

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/row"
)

// takes reports whether a literal is of a kind that the column may hold.
func takes(k *row.KeyCodec, v Value) bool {
	if v.IsNull {
		return k.Nullable
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
