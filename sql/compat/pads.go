package compat

import (
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's LPAD and RPAD count bytes, so that they cut characters in two. They panic if
// the padding is empty. MySQL's count characters, except for binary strings.

func padLeft(ctx *gms.Context, args gms.Row) (any, error)  { return padded(ctx, args, true) }
func padRight(ctx *gms.Context, args gms.Row) (any, error) { return padded(ctx, args, false) }

// padded executes LPAD, if left is set, or RPAD.
func padded(ctx *gms.Context, args gms.Row, left bool) (any, error) {
	length, err := padLength(ctx, args[1])
	if err != nil || length < 0 {
		return nil, err
	}
	_, isBinary := args[0].([]byte)
	if _, isBytes := args[2].([]byte); isBytes {
		isBinary = true
	}
	text, err := padText(ctx, args[0])
	if err != nil {
		return nil, err
	}
	fill, err := padText(ctx, args[2])
	if err != nil {
		return nil, err
	}
	if isBinary {
		v, ok := pad([]byte(text), []byte(fill), int(length), left)
		if !ok {
			return nil, nil
		}
		return v, nil
	}
	if n := utf8.RuneCountInString(text); int64(n) == length {
		return text, nil
	}
	v, ok := pad([]rune(text), []rune(fill), int(length), left)
	if !ok {
		return nil, nil
	}
	return string(v), nil
}

func padText(ctx *gms.Context, v any) (string, error) {
	if b, ok := v.([]byte); ok {
		return string(b), nil
	}
	return types.ConvertToString(ctx, v, types.LongText, nil)
}

// pad pads or cuts a text to a length; false if it would need padding and fill is empty:
// MySQL then returns NULL.
func pad[T any](text, fill []T, length int, left bool) ([]T, bool) {
	missing := length - len(text)
	switch {
	case missing <= 0:
		return text[:length], true
	case len(fill) == 0:
		return nil, false
	}
	padding := make([]T, 0, length)
	if !left {
		padding = append(padding, text...)
	}
	for ; missing > 0; missing -= len(fill) {
		padding = append(padding, fill[:min(missing, len(fill))]...)
	}
	if left {
		padding = append(padding, text...)
	}
	return padding, true
}

// padLength converts an argument to a length; 1<<62 for one that is out of range.
func padLength(ctx *gms.Context, v any) (int64, error) {
	n, in, err := types.Float64.Convert(ctx, v)
	if err != nil {
		return 0, err
	}
	switch f := n.(float64); {
	case f < -1<<62:
		return -1, nil // as all negative lengths
	case in != gms.InRange || f > 1<<62:
		return 1 << 62, nil
	}
	v, _, err = types.Int64.Convert(ctx, v)
	if err != nil {
		return 0, err
	}
	whole, _ := row.Signed(v)
	return whole, nil
}
