package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/hash"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// An exactIn is IN of a subquery whose column has another type than the left side, and both types
// are numbers, or times, or ENUMs and SETs. go-mysql-server converts the left side to the column's
// type before it looks the value up. So 1.5 would be found among integers that include 2, and a
// time among dates.
type exactIn struct {
	*plan.InSubquery
	query *plan.Subquery
	// equal compares the left side's value with the same value in the column's type.
	equal gms.Expression
}

// newExactIn returns an exactIn for an IN that needs one, nil for others.
func newExactIn(ctx *gms.Context, in *plan.InSubquery) (gms.Expression, error) {
	query, ok := in.RightChild.(*plan.Subquery)
	if !ok || !in.LeftChild.Resolved() || !query.Resolved() {
		return nil, nil
	}
	left, right := in.LeftChild.Type(ctx), query.Type(ctx)
	switch {
	case left.Equals(right):
		return nil, nil
	case types.IsNumber(left) && types.IsNumber(right), types.IsTime(left) && types.IsTime(right):
	case isElement(left) && isElement(right): // elements with equal numbers may have different texts
		byText, err := in.WithChildren(ctx, newAsText(ctx, in.LeftChild), query)
		if err != nil {
			return nil, err
		}
		in = byText.(*plan.InSubquery)
	case isMixed(left, right):
		return compareEach(ctx, &quantifiedComparison{expression.BinaryExpressionStub{LeftChild: in.LeftChild, RightChild: query}, "=", false, nil})
	default:
		return nil, nil
	}
	column, _ := exactColumn(ctx, expression.NewGetField(1, right, "", true))
	value, _ := exactColumn(ctx, in.LeftChild)
	equal, _, err := Compared(ctx, nil, expression.NewEquals(&placed{value, 0}, column))
	return &exactIn{in, query, equal}, err
}

// isMixed reports whether = compares values of two types by a third one, or by one of the two which depends on
// the value: then IN compares with each row of the subquery. To look up the left side among them, go-mysql-server
// converts it to their type: 'a' is no number, so it would be equal to none, and not to 0.
func isMixed(a, b gms.Type) bool {
	kinds := []func(gms.Type) bool{types.IsNumber, types.IsTime, row.IsTimespan, isElement, types.IsTextOnly}
	of := func(t gms.Type) int {
		return slices.IndexFunc(kinds, func(is func(gms.Type) bool) bool { return is(t) })
	}
	return of(a) >= 0 && of(b) >= 0 && of(a) != of(b)
}

// Eval implements gms.Expression.
func (e *exactIn) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	left, err := e.LeftChild.Eval(ctx, row)
	if err != nil || left == nil {
		return e.lookUp(ctx, row, err)
	}
	converted, inRange, err := e.query.Type(ctx).Convert(ctx, left)
	if err == nil && inRange == gms.InRange {
		isEqual, err := e.equal.Eval(ctx, gms.Row{left, converted})
		if err != nil || gms.IsTrue(isEqual) {
			return e.lookUp(ctx, row, err)
		}
	}
	// No value of the column's type equals the left side.
	values, err := e.query.HashMultiple(ctx, row)
	if err != nil {
		return nil, err
	}
	null, err := hash.HashOf(ctx, nil, gms.NewRow(nil))
	if err != nil {
		return nil, err
	}
	if _, err := values.Get(null); err == nil {
		return nil, nil // the NULL of the subquery might be the value
	}
	return false, nil
}

// lookUp returns the result of go-mysql-server's IN, which is right for a left side that has a
// value of the column's type. It returns err, if that is not nil.
func (e *exactIn) lookUp(ctx *gms.Context, row gms.Row, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return e.InSubquery.Eval(ctx, row)
}

// WithChildren implements gms.Expression.
func (e *exactIn) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	in, err := e.InSubquery.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	changed := *e
	changed.InSubquery = in.(*plan.InSubquery)
	changed.query, _ = changed.RightChild.(*plan.Subquery)
	return &changed, nil
}
