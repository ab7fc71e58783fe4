package plan

import (
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
)

// An Outer is a column of the outer row of a subquery.
type Outer struct {
	*expression.GetField
	value any
}

// Eval implements gms.Expression.
func (o *Outer) Eval(*gms.Context, gms.Row) (any, error) { return o.value, nil }

// WithChildren implements gms.Expression. All copies of an expression share the column.
func (o *Outer) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(o, len(children), 0)
	}
	return o, nil
}

// String returns the column as plans show it.
func (o *Outer) String() string { return "outer " + o.GetField.String() }

var (
	_ gms.Expression         = (*Outer)(nil)
	_ gms.Expression         = (*Scalar)(nil)
	_ gms.CollationCoercible = (*Scalar)(nil)
)

// A Scalar is the value of a subquery: the value of its only row, or NULL if it has none.
type Scalar struct {
	query *Subquery
	// args are the values for the subquery's Outers.
	args []gms.Expression
	// typ is the type of the value. of is the expression that go-mysql-server has in its place.
	typ gms.Type
	of  gms.Expression
}

// String returns the subquery as plans show it.
func (s *Scalar) String() string { return fmt.Sprintf("subquery %d", s.query.number) }

// Type implements gms.Expression.
func (s *Scalar) Type(*gms.Context) gms.Type { return s.typ }

// IsNullable implements gms.Expression.
func (s *Scalar) IsNullable(ctx *gms.Context) bool { return s.of.IsNullable(ctx) }

// Resolved implements gms.Expression.
func (s *Scalar) Resolved() bool { return true }

// Children implements gms.Expression.
func (s *Scalar) Children() []gms.Expression { return s.args }

// CollationCoercibility implements gms.CollationCoercible.
func (s *Scalar) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, s.of)
}

// WithChildren implements gms.Expression. All copies share the subquery.
func (s *Scalar) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != len(s.args) {
		return nil, gms.ErrInvalidChildrenNumber.New(s, len(children), len(s.args))
	}
	n := *s
	n.args = children
	return &n, nil
}

// Eval implements gms.Expression. It runs the subquery for the outer row or, if the subquery has no Outers, once for each
// execution.
func (s *Scalar) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	q := s.query
	if q.isKnown {
		return q.value, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, e := range s.args {
		v, err := e.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		q.outer[i].value = v
	}
	for _, c := range q.computed {
		if err := c.compute(ctx, q.values); err != nil {
			return nil, err
		}
	}
	v, err := q.single(ctx)
	if err == nil && len(q.outer) == 0 {
		q.isKnown, q.value = true, v
	}
	return v, err
}
