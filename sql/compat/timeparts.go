package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// timePart is HOUR, MINUTE, SECOND, MICROSECOND or TIME_TO_SEC. go-mysql-server's versions accept only
// dates with a time, and return NULL for a time, also given as text or number.
type timePart struct {
	expression.UnaryExpressionStub
	name string
	of   func(clock) int64
}

var _ gms.FunctionExpression = (*timePart)(nil)

// timeParts maps the names of these functions to their result for a time.
var timeParts = map[string]func(clock) int64{
	"hour":        func(c clock) int64 { return int64(max(c, -c) / hourClock) },
	"minute":      func(c clock) int64 { return int64(max(c, -c) / minuteClock % 60) },
	"second":      func(c clock) int64 { return int64(max(c, -c) / secondClock % 60) },
	"microsecond": func(c clock) int64 { return int64(max(c, -c) % secondClock) },
	"time_to_sec": func(c clock) int64 { return int64(c / secondClock) },
}

func timeFunction(name string) (gms.Function, bool) {
	of, ok := timeParts[name]
	if !ok {
		return nil, false
	}
	return gms.Function1{Name: name, Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
		return &timePart{expression.UnaryExpressionStub{Child: e}, name, of}
	}}, true
}

// FunctionName implements gms.FunctionExpression.
func (p *timePart) FunctionName() string { return p.name }

// Description implements gms.FunctionExpression.
func (p *timePart) Description() string { return "returns a part of a time." }

// String implements gms.Expression.
func (p *timePart) String() string { return p.name + "(" + p.Child.String() + ")" }

// Type implements gms.Expression.
func (*timePart) Type(*gms.Context) gms.Type { return types.Int64 }

// IsNullable implements gms.Expression.
func (*timePart) IsNullable(*gms.Context) bool { return true }

// Eval implements gms.Expression.
func (p *timePart) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := p.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return nil, err
	}
	us, ok := clockOf(ctx, v)
	if !ok {
		return nil, nil
	}
	return p.of(clock(us)), nil
}

// WithChildren implements gms.Expression.
func (p *timePart) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(p, len(children), 1)
	}
	return &timePart{expression.UnaryExpressionStub{Child: children[0]}, p.name, p.of}, nil
}
