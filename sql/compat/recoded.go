package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/encodings"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A recoded is CONVERT ... USING: it replaces the characters of a text that the character set
// lacks, or decodes bytes from the character set; for the character set binary it calls
// go-mysql-server's CONVERT. go-mysql-server keeps all text in UTF-8, but its CONVERT returns
// bytes encoded in the character set: functions that count characters then encode them again, and
// panic.
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
	// Encoding replaces the characters that the character set lacks.
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
