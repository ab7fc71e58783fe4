package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server compares a row with the rows of a subquery as if NULL were a value, and
// compares texts in it by their bytes. This file compares column by column.

// A rowInQuery is a comparison of a row with a subquery: IN, = or <=>.
type rowInQuery struct {
	expression.BinaryExpressionStub
	// equal compares the columns pairwise, over a row of the left side's values followed by the
	// right side's.
	equal gms.Expression
	// isIn is set for IN: the subquery may have any number of rows.
	isIn bool
}

var _ gms.Expression = (*rowInQuery)(nil)

// newRowInQuery returns our comparison of a row with a subquery; nil if the comparison is of other
// operands.
func newRowInQuery(ctx *gms.Context, left, right gms.Expression, equal func(l, r gms.Expression) gms.Expression, isIn bool) (gms.Expression, error) {
	row, isRow := left.(expression.Tuple)
	query, isQuery := right.(*plan.Subquery)
	if !isRow || !isQuery || len(row) < 2 {
		return nil, nil
	}
	columns := query.Query.Schema(ctx)
	if len(columns) != len(row) {
		return nil, nil // go-mysql-server reports the error
	}
	all := make([]gms.Expression, len(row))
	for i, c := range columns {
		l, _ := exactColumn(ctx, row[i])
		r, _ := exactColumn(ctx, expression.NewGetField(len(row)+i, c.Type, c.Name, true))
		e, _, err := Compared(ctx, nil, equal(&placed{l, i}, r))
		if err != nil {
			return nil, err
		}
		all[i] = e
	}
	return &rowInQuery{expression.BinaryExpressionStub{LeftChild: left, RightChild: right}, expression.JoinAnd(all...), isIn}, nil
}

func equals(l, r gms.Expression) gms.Expression         { return expression.NewEquals(l, r) }
func nullSafeEquals(l, r gms.Expression) gms.Expression { return expression.NewNullSafeEquals(l, r) }

// Type implements gms.Expression.
func (*rowInQuery) Type(*gms.Context) gms.Type { return types.Boolean }

// String implements gms.Expression.
func (r *rowInQuery) String() string {
	op := " = "
	if r.isIn {
		op = " IN "
	}
	return r.LeftChild.String() + op + r.RightChild.String()
}

// Eval implements gms.Expression.
func (r *rowInQuery) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	left, err := r.LeftChild.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	rows, err := r.RightChild.(*plan.Subquery).EvalMultiple(ctx, row)
	if err != nil {
		return nil, err
	}
	if !r.isIn {
		return r.compareOne(ctx, left.([]any), rows)
	}
	var result any = false
	for _, right := range rows {
		isEqual, err := r.equal.Eval(ctx, append(append(gms.Row{}, left.([]any)...), right.([]any)...))
		if err != nil || gms.IsTrue(isEqual) {
			return isEqual, err
		}
		if isEqual == nil {
			result = nil
		}
	}
	return result, nil
}

// compareOne compares the left side with the only row of a subquery, and fails if there are
// several. If the subquery has no row, it compares the left side with a row of NULLs, but returns
// false if these are equal.
func (r *rowInQuery) compareOne(ctx *gms.Context, left []any, rows []any) (any, error) {
	switch len(rows) {
	case 0:
		isEqual, err := r.equal.Eval(ctx, append(append(gms.Row{}, left...), make(gms.Row, len(left))...))
		if gms.IsTrue(isEqual) { // an empty result differs from a row of NULLs
			return false, err
		}
		return isEqual, err
	case 1:
		return r.equal.Eval(ctx, append(append(gms.Row{}, left...), rows[0].([]any)...))
	}
	return nil, gms.ErrExpectedSingleRow.New()
}

// WithChildren implements gms.Expression.
func (r *rowInQuery) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 2 {
		return nil, gms.ErrInvalidChildrenNumber.New(r, len(children), 2)
	}
	return &rowInQuery{expression.BinaryExpressionStub{LeftChild: children[0], RightChild: children[1]}, r.equal, r.isIn}, nil
}

// A placed is an expression that reads its value from a row.
type placed struct {
	gms.Expression
	at int
}

// Eval implements gms.Expression.
func (p *placed) Eval(_ *gms.Context, row gms.Row) (any, error) { return row[p.at], nil }

// CollationCoercibility implements gms.CollationCoercible.
func (p *placed) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, p.Expression)
}
