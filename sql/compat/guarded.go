package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server's RAND(NULL) panics. So does UNIX_TIMESTAMP of anything that needs the session or
// warns: it is evaluated while planning, without a context, for the type of the result.

// guards change an argument of a function with which go-mysql-server would panic.
var guards = map[string]func(ctx *gms.Context, arg gms.Expression) gms.Expression{
	"rand": func(ctx *gms.Context, arg gms.Expression) gms.Expression {
		return function.NewIfNull(ctx, arg, expression.NewLiteral(int64(0), types.Int64))
	},
	"unix_timestamp": func(ctx *gms.Context, arg gms.Expression) gms.Expression {
		_, isLiteral := arg.(*expression.Literal)
		if arg.Resolved() && (types.IsTime(arg.Type(ctx)) || isLiteral && types.IsText(arg.Type(ctx))) {
			return arg
		}
		return &moment{expression.UnaryExpressionStub{Child: arg}}
	},
}

// guardedFunction returns a function of go-mysql-server's with guarded arguments.
func guardedFunction(name string) (gms.Function, bool) {
	guard, ok := guards[name]
	if !ok {
		return nil, false
	}
	newInstance := newUnixTimestamp
	if name != "unix_timestamp" {
		newInstance = func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
			return BuiltIns[name].NewInstance(ctx, args)
		}
	}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		guarded := make([]gms.Expression, len(args))
		for i, a := range args {
			guarded[i] = guard(ctx, a)
		}
		return newInstance(ctx, guarded...)
	}}, true
}

// A moment is an argument of UNIX_TIMESTAMP that may be evaluated with a context only. Its type
// tells go-mysql-server the digits of the result's fraction.
type moment struct{ expression.UnaryExpressionStub }

var (
	_ gms.Expression         = (*moment)(nil)
	_ gms.CollationCoercible = (*moment)(nil)
)

// String implements gms.Expression.
func (m *moment) String() string { return m.Child.String() }

// Type implements gms.Expression.
func (m *moment) Type(ctx *gms.Context) gms.Type {
	switch t := m.Child.Type(ctx).(type) {
	case gms.DatetimeType:
		return t
	case gms.DecimalType:
		return types.MustCreateDatetimeType(types.Datetime.Type(), int(min(t.Scale(), 6)))
	default:
		if types.IsInteger(t) || types.IsYear(t) {
			return types.MustCreateDatetimeType(types.Datetime.Type(), 0)
		}
		return types.DatetimeMaxPrecision
	}
}

// CollationCoercibility implements gms.CollationCoercible.
func (m *moment) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, m.Child)
}

// Eval implements gms.Expression.
func (m *moment) Eval(ctx *gms.Context, over gms.Row) (any, error) {
	v, err := m.Child.Eval(ctx, over)
	if err != nil || v == nil || !types.IsNumber(m.Child.Type(ctx)) {
		return v, err
	}
	if t, ok := readMoment(ctx, v); ok {
		return t, nil
	}
	return v, nil // go-mysql-server warns of it
}

// WithChildren implements gms.Expression.
func (m *moment) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(m, len(children), 1)
	}
	return &moment{expression.UnaryExpressionStub{Child: children[0]}}, nil
}
