package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/encodings"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A recoded is CONVERT ... USING: the text without what the character set has not, or what bytes
// say in it; of the character set binary it is go-mysql-server's, bytes. go-mysql-server, in which all text is UTF-8, makes the bytes of the character set
// of it, of which functions that count them make something once more, and panic.
type recoded struct{ *expression.ConvertUsing }

var (
	_ gms.Expression         = recoded{}
	_ gms.CollationCoercible = recoded{}
)

// Type implements gms.Expression.
func (r recoded) Type(ctx *gms.Context) gms.Type {
	if r.TargetCharSet != gms.CharacterSet_binary && types.IsBinaryType(r.Child.Type(ctx)) {
		return types.CreateLongText(r.TargetCharSet.DefaultCollation())
	}
	return r.ConvertUsing.Type(ctx)
}

// Eval implements gms.Expression.
func (r recoded) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	if r.TargetCharSet == gms.CharacterSet_binary {
		return r.ConvertUsing.Eval(ctx, row)
	}
	v, err := r.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	coder := r.TargetCharSet.Encoder()
	if b, ok := v.([]byte); ok && types.IsBinaryType(r.Child.Type(ctx)) {
		text, ok := coder.Decode(b)
		if !ok {
			return nil, nil
		}
		return string(text), nil
	}
	text, ok, err := gms.Unwrap[string](ctx, v)
	if err != nil || !ok {
		return v, err
	}
	known, _ := coder.Decode(coder.EncodeReplaceUnknown(encodings.StringToBytes(text)))
	return string(known), nil
}

// WithChildren implements gms.Expression.
func (r recoded) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	c, err := r.ConvertUsing.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return recoded{c.(*expression.ConvertUsing)}, nil
}
