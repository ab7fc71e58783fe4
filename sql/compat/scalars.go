package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/row"
)

// This file has the common code of the functions that go-mysql-server lacks, or computes wrongly
// whatever the types of their arguments: functions of texts (positions.go), numbers (numbers.go)
// and times (timesums.go, weeks.go).

// A scalar is a function of values.
type scalar struct {
	name        string
	least, most int // numbers of arguments
	typ         func(ctx *gms.Context, args []gms.Expression) gms.Type
	// eval computes the result from the values of the arguments. No value is NULL, unless the function is in takesNull.
	eval func(ctx *gms.Context, call *scalarCall, values gms.Row) (any, error)
}

// scalars are the functions by name.
var scalars = make(map[string]*scalar)

// takesNull are the functions that accept NULL for all arguments except the first.
var takesNull = setOf("week", "yearweek")

// registerScalars registers functions.
func registerScalars(all ...*scalar) {
	for _, s := range all {
		scalars[s.name] = s
	}
}

// always returns a function for scalar.typ that always returns t.
func always(t gms.Type) func(*gms.Context, []gms.Expression) gms.Type {
	return func(*gms.Context, []gms.Expression) gms.Type { return t }
}

// scalarFunction returns a registered function.
func scalarFunction(name string) (gms.Function, bool) {
	s, ok := scalars[name]
	if !ok {
		return nil, false
	}
	return gms.FunctionN{Name: name, Fn: func(_ *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		return newScalarCall(s, args)
	}}, true
}

// A scalarCall is the call of a scalar.
type scalarCall struct {
	expression.NaryExpression
	*scalar
}

var (
	_ gms.FunctionExpression = (*scalarCall)(nil)
	_ gms.CollationCoercible = (*scalarCall)(nil)
)

func newScalarCall(s *scalar, args []gms.Expression) (gms.Expression, error) {
	if len(args) < s.least || len(args) > s.most {
		return nil, gms.ErrInvalidArgumentNumber.New(s.name, s.least, len(args))
	}
	c := &scalarCall{expression.NaryExpression{ChildExpressions: args}, s}
	if ofClock[s.name] {
		return &clockCall{c}, nil
	}
	return c, nil
}

// FunctionName implements gms.FunctionExpression.
func (c *scalarCall) FunctionName() string { return c.name }

// Description implements gms.FunctionExpression.
func (c *scalarCall) Description() string { return "returns what MySQL's " + c.name + " does." }

// String implements gms.Expression.
func (c *scalarCall) String() string {
	text := c.name + "("
	for i, e := range c.ChildExpressions {
		if i > 0 {
			text += ", "
		}
		text += e.String()
	}
	return text + ")"
}

// Type implements gms.Expression.
func (c *scalarCall) Type(ctx *gms.Context) gms.Type { return c.typ(ctx, c.ChildExpressions) }

// IsNullable implements gms.Expression.
func (*scalarCall) IsNullable(*gms.Context) bool { return true }

// CollationCoercibility implements gms.CollationCoercible.
func (c *scalarCall) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	if types.IsTextOnly(c.Type(ctx)) {
		return ctx.GetCollation(), 4
	}
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression.
func (c *scalarCall) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	values := make(gms.Row, len(c.ChildExpressions))
	for i, e := range c.ChildExpressions {
		v, err := e.Eval(ctx, over)
		if err != nil {
			return nil, err
		}
		if v == nil {
			if i > 0 && takesNull[c.name] {
				continue
			}
			return nil, nil
		}
		if values[i], err = gms.UnwrapAny(ctx, v); err != nil {
			return nil, err
		}
	}
	return c.eval(ctx, c, values)
}

// WithChildren implements gms.Expression.
func (c *scalarCall) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != len(c.ChildExpressions) {
		return nil, gms.ErrInvalidChildrenNumber.New(c, len(children), len(c.ChildExpressions))
	}
	return newScalarCall(c.scalar, children)
}

// doubleOf converts a value to a double. It warns if only a part of a text is a number.
func doubleOf(ctx *gms.Context, v any) (float64, error) {
	n, _, err := types.Float64.Convert(ctx, v)
	switch {
	case gms.ErrTruncatedIncorrect.Is(err):
		ctx.Warn(mysql.ERTruncatedWrongValue, "%s", err.Error())
	case err != nil:
		return 0, err
	}
	f, _ := n.(float64)
	return f, nil
}

// wholeOf converts a value to an integer. It warns if only a part of a text is a number.
func wholeOf(ctx *gms.Context, v any) (int64, error) {
	n, _, err := types.Int64.Convert(ctx, v)
	switch {
	case gms.ErrTruncatedIncorrect.Is(err):
		ctx.Warn(mysql.ERTruncatedWrongValue, "%s", err.Error())
	case err != nil:
		return 0, err
	}
	i, _ := row.Signed(n)
	return i, nil
}

// decimalOf converts a value to a decimal. It warns if only a part of a text is a number.
func decimalOf(ctx *gms.Context, v any) (decimal.Decimal, error) {
	n, err := types.InternalDecimalType.ConvertToNullDecimal(row.BoundedNumber(v))
	switch {
	case gms.ErrTruncatedIncorrect.Is(err):
		ctx.Warn(mysql.ERTruncatedWrongValue, "%s", err.Error())
	case err != nil:
		f, err := doubleOf(ctx, v)
		return decimal.NewFromFloat(f), err
	}
	return n.Decimal, nil
}
