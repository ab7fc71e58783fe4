package change

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/row"
)

// The functions in a rewritten INSERT ... ON DUPLICATE KEY UPDATE (upsert.go).
const (
	carryName    = "farmsql.carry"
	carriedName  = "farmsql.carried"
	insertedName = "farmsql.inserted"
)

var (
	_ gms.Expression                 = (*carry)(nil)
	_ gms.NonDeterministicExpression = (*carry)(nil)
	_ gms.Expression                 = (*carried)(nil)
	_ gms.NonDeterministicExpression = (*carried)(nil)
	_ gms.Expression                 = (*insertedValue)(nil)
)

// upsertFunction looks up the function whose name is carryName, carriedName or insertedName, and
// returns false for any other name. The function keeps ctx, because go-mysql-server passes a nil context
// when it creates a call.
func upsertFunction(ctx *gms.Context, name string) (gms.Function, bool) {
	var create func(*gms.Context, ...gms.Expression) (gms.Expression, error)
	switch name {
	case carryName:
		create = newCarry
	case carriedName:
		create = newCarried
	case insertedName:
		create = newInsertedValue
	default:
		return nil, false
	}
	return gms.FunctionN{Name: name, Fn: func(_ *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		return create(ctx, args...)
	}}, true
}

// A load holds the values that the current row of an INSERT carries. Each plan has its own
// load; the Statement has that of the INSERT being planned.
type load struct {
	types  []gms.Type
	values []any
}

// loadOf returns the load of the INSERT being planned. If there is none, it fails as if carry and
// the functions that read the load did not exist.
func loadOf(ctx *gms.Context) (*load, error) {
	if s := statementOf(ctx); s != nil && s.load != nil {
		return s.load, nil
	}
	return nil, gms.ErrFunctionNotFound.New(carryName)
}

// carry evaluates to its first argument, and puts the others into its load.
type carry struct {
	expression.NaryExpression
	load *load
}

// newCarry returns a call of carry, and notes the types of the carried values.
func newCarry(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
	l, err := loadOf(ctx)
	if err != nil {
		return nil, err
	}
	l.types = nil
	for _, a := range args[1:] {
		l.types = append(l.types, a.Type(ctx))
	}
	return &carry{expression.NaryExpression{ChildExpressions: args}, l}, nil
}

// String implements gms.Expression.
func (c *carry) String() string { return c.ChildExpressions[0].String() }

// Type implements gms.Expression.
func (c *carry) Type(ctx *gms.Context) gms.Type { return c.ChildExpressions[0].Type(ctx) }

// IsNullable implements gms.Expression.
func (c *carry) IsNullable(ctx *gms.Context) bool { return c.ChildExpressions[0].IsNullable(ctx) }

// IsNonDeterministic implements gms.NonDeterministicExpression.
func (c *carry) IsNonDeterministic() bool { return true }

// Eval implements gms.Expression.
func (c *carry) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	values := make([]any, 0, len(c.ChildExpressions)-1)
	for _, x := range c.ChildExpressions[1:] {
		v, err := x.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	c.load.values = values
	return c.ChildExpressions[0].Eval(ctx, row)
}

// WithChildren implements gms.Expression.
func (c *carry) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != len(c.ChildExpressions) {
		return nil, gms.ErrInvalidChildrenNumber.New(c, len(children), len(c.ChildExpressions))
	}
	return &carry{expression.NaryExpression{ChildExpressions: children}, c.load}, nil
}

// carried evaluates to a value that the current row carries.
type carried struct {
	load *load
	at   int
}

// newCarried returns a call of carried. Its argument is the number of a carried value; a number
// below 0 counts from the end.
func newCarried(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
	l, err := loadOf(ctx)
	if err != nil {
		return nil, err
	}
	v, err := args[0].Eval(ctx, nil)
	if err != nil {
		return nil, err
	}
	at, _ := row.Signed(v)
	if at < 0 {
		at += int64(len(l.types))
	}
	if at < 0 || at >= int64(len(l.types)) {
		return nil, gms.ErrInvalidArgumentDetails.New(carriedName, v)
	}
	return &carried{l, int(at)}, nil
}

// Children implements gms.Expression.
func (c *carried) Children() []gms.Expression { return nil }

// Resolved implements gms.Expression.
func (c *carried) Resolved() bool { return true }

// String implements gms.Expression.
func (c *carried) String() string { return carriedName }

// Type implements gms.Expression.
func (c *carried) Type(*gms.Context) gms.Type { return c.load.types[c.at] }

// IsNullable implements gms.Expression.
func (c *carried) IsNullable(*gms.Context) bool { return true }

// IsNonDeterministic implements gms.NonDeterministicExpression.
func (c *carried) IsNonDeterministic() bool { return true }

// Eval implements gms.Expression.
func (c *carried) Eval(*gms.Context, gms.Row) (any, error) { return c.load.values[c.at], nil }

// WithChildren implements gms.Expression.
func (c *carried) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(c, len(children), 0)
	}
	return c, nil
}

// insertedValue is VALUES(column). ON DUPLICATE KEY UPDATE is evaluated over the existing row
// followed by the inserted one.
type insertedValue struct{ expression.UnaryExpressionStub }

func newInsertedValue(_ *gms.Context, args ...gms.Expression) (gms.Expression, error) {
	if _, ok := args[0].(*expression.GetField); !ok {
		return nil, gms.ErrInvalidArgumentDetails.New(insertedName, args[0])
	}
	return &insertedValue{expression.UnaryExpressionStub{Child: args[0]}}, nil
}

// String implements gms.Expression.
func (v *insertedValue) String() string { return "values(" + v.Child.String() + ")" }

// Type implements gms.Expression.
func (v *insertedValue) Type(ctx *gms.Context) gms.Type { return v.Child.Type(ctx) }

// Eval implements gms.Expression.
func (v *insertedValue) Eval(_ *gms.Context, row gms.Row) (any, error) {
	return row[len(row)/2+v.Child.(*expression.GetField).Index()], nil
}

// WithChildren implements gms.Expression.
func (v *insertedValue) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(v, len(children), 1)
	}
	return newInsertedValue(ctx, children...)
}

// carries reports whether a node is the projection that calls carry.
func carries(n gms.Node) bool {
	p, ok := n.(*plan.Project)
	if !ok || len(p.Projections) == 0 {
		return false
	}
	last := p.Projections[len(p.Projections)-1]
	if a, ok := last.(*expression.Alias); ok {
		last = a.Child
	}
	_, ok = last.(*carry)
	return ok
}
