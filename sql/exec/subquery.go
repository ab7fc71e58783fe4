package exec

import (
	"errors"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// Open implements plan.RowSource.
func (r *run) Open(ctx *gms.Context, n plan.Node) (gms.RowIter, error) { return r.open(ctx, n) }

// Keep implements plan.RowSource.
func (r *run) Keep(n int64) error { return r.take(n) }

// unlessRefused returns ErrPlan for a value of a subquery that plans do not compare.
func unlessRefused(err error) error {
	if errors.Is(err, plan.ErrRefused) {
		return ErrPlan
	}
	return err
}

// canName reports whether the columns of a statement that is prepared for values can be named for others.
func (s *Statement) canName(p *prepared, values []plan.Value) bool {
	if !s.literals.HasNames() {
		return true
	}
	p.values = slices.Clone(values)
	_, ok := s.literals.Named(p.header.Schema, values, values)
	return ok
}

// headerFor returns the header of a result, whose columns may have values of the statement in their names.
func (s *Statement) headerFor(p *prepared, values []plan.Value) (*Header, error) {
	if !s.literals.HasNames() {
		return p.header, nil
	}
	columns, ok := s.literals.Named(p.header.Schema, p.values, values)
	if !ok {
		return nil, ErrPlan
	}
	return &Header{Schema: columns}, nil
}
