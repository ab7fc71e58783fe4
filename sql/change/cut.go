package change

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
)

// This file cuts texts that are longer than their column, in statements with IGNORE. go-mysql-server cuts bytes in
// place of characters, panics if the value is no text, and in an UPDATE keeps the old value.

// isCut reports whether IGNORE cuts values of a type.
func isCut(t gms.Type) bool { return types.IsText(t) }

// cut is like store.Assign, for a statement with IGNORE: it cuts the value to the length of the column.
func cut(ctx *gms.Context, v any, t gms.Type, column string, row int) (any, error) {
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
	myerr.DataTruncated.Warn(ctx, column, row)
	if types.IsBinaryType(t) {
		return whole.(string)[:text.MaxByteLength()], nil
	}
	return firstCharacters(whole.(string), text), nil
}

// firstCharacters returns as many characters of a text as fit into a type.
func firstCharacters(s string, t gms.StringType) string {
	bytes, characters := int(min(t.MaxByteLength(), int64(len(s)))), t.MaxCharacterLength()
	for at := range s {
		if characters == 0 || at > bytes {
			return s[:at]
		}
		characters--
	}
	return s
}
