package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// timePart is TIME_TO_SEC or MICROSECOND. go-mysql-server's versions accept only dates with a
// time, and return NULL for a time given as text or number.
type timePart struct {
	expression.UnaryExpressionStub
	name string
	of   func(microseconds int64) int64
}

var _ gms.FunctionExpression = (*timePart)(nil)

// timeParts maps the names of these two functions to their result for a time in microseconds.
var timeParts = map[string]func(microseconds int64) int64{
	"time_to_sec": func(us int64) int64 { return us / 1e6 },
	"microsecond": func(us int64) int64 { return max(us, -us) % 1e6 },
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
	us, ok := clockOf(ctx, v)
	if !ok {
		return nil, nil
	}
	return p.of(us), nil
}

// WithChildren implements gms.Expression.
func (p *timePart) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(p, len(children), 1)
	}
	return &timePart{expression.UnaryExpressionStub{Child: children[0]}, p.name, p.of}, nil
}
