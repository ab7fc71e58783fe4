package compat

import (
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
)

// A textNumber is a column of texts, converted to doubles because it is compared with a whole number. For
// each text that is not a number, go-mysql-server would make an error with a stack trace, and then turn that
// into a warning.
type textNumber struct{ expression.UnaryExpressionStub }

// withTextNumber replaces, in operands, a column of texts that e compares with a whole number by a
// textNumber; false if there is none.
func withTextNumber(ctx *gms.Context, e gms.Expression, operands []gms.Expression) bool {
	if _, ok := e.(expression.Comparer); !ok || len(operands) != 2 {
		return false
	}
	for i, operand := range operands {
		column, ok := operand.(*expression.GetField)
		if ok && types.IsTextOnly(column.Type(ctx)) && types.IsInteger(operands[1-i].Type(ctx)) {
			operands[i] = &textNumber{expression.UnaryExpressionStub{Child: column}}
			return true
		}
	}
	return false
}

// Type implements gms.Expression.
func (*textNumber) Type(*gms.Context) gms.Type { return types.Float64 }

// String implements gms.Expression.
func (t *textNumber) String() string { return t.Child.String() }

// Eval implements gms.Expression.
func (t *textNumber) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := t.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	text, ok := v.(string)
	if !ok {
		f, _, err := types.Float64.Convert(ctx, v)
		return f, err
	}
	f, warning := NumberOfText(text, func() bool { return true })
	if warning != nil {
		ctx.Session.Warn(warning)
	}
	return f, nil
}

// NumberOfText returns the double that a text is when it is compared with a number: the number with which it begins, or 0. If
// the text has something else, there is a warning, which is made only if it is wanted.
func NumberOfText(text string, isWanted func() bool) (float64, *gms.Warning) {
	number, isCut := types.TruncateStringToDouble(text)
	f, _ := strconv.ParseFloat(number, 64) // what is no number is 0
	if !isCut || !isWanted() {
		return f, nil
	}
	return f, &gms.Warning{Level: "Warning", Code: mysql.ERTruncatedWrongValue, Message: "Truncated incorrect double value: " + text}
}

// WithChildren implements gms.Expression.
func (t *textNumber) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(t, len(children), 1)
	}
	return &textNumber{expression.UnaryExpressionStub{Child: children[0]}}, nil
}
