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

// unlessRefused returns ErrPlan if a plan refuses to compare a subquery's value.
func unlessRefused(err error) error {
	if errors.Is(err, plan.ErrRefused) {
		return ErrPlan
	}
	return err
}

// canName reports whether the columns of a statement that was prepared for its values can be renamed for others. For that
// it keeps the values in p.
func (s *Statement) canName(p *prepared, values []plan.Value) bool {
	if !s.literals.HasNames() {
		return true
	}
	p.values = slices.Clone(values)
	_, ok := s.literals.Named(p.header.Schema, values, values)
	return ok
}

// headerFor returns the header of a result. Names of its columns may contain values of the statement.
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
