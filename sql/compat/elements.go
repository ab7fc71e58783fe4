package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// MySQL compares an ENUM or SET with text, and with another ENUM or SET, by its text. It compares
// it with a number by its place in the list (ENUM) or its bits (SET). MIN and MAX compare texts.
// go-mysql-server converts the other operand to the element's type. So it compares places for <, >
// and BETWEEN, cuts fractions, treats 'b,a' as the set 'a,b', and fails for a text that is not an
// element.

// An elementNumber is the number of an ENUM or SET.
type elementNumber struct{ expression.UnaryExpressionStub }

var (
	_ gms.Expression         = (*elementNumber)(nil)
	_ gms.CollationCoercible = (*elementNumber)(nil)
)

// withElements returns a comparison whose elements are replaced by their texts or numbers; nil if
// go-mysql-server compares it correctly as it is.
func withElements(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	var operands []gms.Expression
	ordered := true
	switch e := e.(type) {
	case *expression.Between:
		operands = []gms.Expression{e.Val, e.Lower, e.Upper}
	case *expression.Equals, *expression.NullSafeEquals:
		operands, ordered = e.Children(), false
	case *expression.GreaterThan, *expression.GreaterThanOrEqual, *expression.LessThan, *expression.LessThanOrEqual:
		operands = e.Children()
	case *expression.InTuple:
		return listOfElements(ctx, e.Left(), e.Right())
	case *expression.HashInTuple:
		return listOfElements(ctx, e.Left(), e.Right())
	case *plan.InSubquery:
		return elementInQuery(ctx, e)
	default:
		return nil, nil
	}
	replaced := false
	changed := make([]gms.Expression, len(operands))
	for i, operand := range operands {
		changed[i] = operand
		if !isElement(operand.Type(ctx)) {
			continue
		}
		if instead := elementBeside(ctx, operand, operands, ordered); instead != nil {
			changed[i], replaced = instead, true
		}
	}
	if !replaced {
		return nil, nil
	}
	return e.WithChildren(ctx, changed...)
}

// elementBeside returns the replacement of an element among the operands of a comparison: its text if
// another operand is a text or an element, else its number. It returns nil if the element may stay: the
// others are constants that its type can hold or, if the comparison is not ordered (<, > or BETWEEN),
// elements of the same type. With texts, an element in an ordered comparison never stays.
func elementBeside(ctx *gms.Context, element gms.Expression, operands []gms.Expression, ordered bool) gms.Expression {
	texts, numbers, stays := false, false, true
	typ := element.Type(ctx)
	for _, other := range operands {
		if other == element {
			continue
		}
		switch of := other.Type(ctx); {
		case isElement(of) && !ordered && types.TypesEqual(of, typ):
		case isElement(of), types.IsText(of):
			texts, stays = true, stays && !ordered && isItem(ctx, typ, other)
		case types.IsNumber(of):
			numbers, stays = true, stays && isPlace(ctx, typ, other)
		}
	}
	switch {
	case stays:
		return nil
	case texts:
		return newAsText(ctx, element)
	case numbers:
		return &elementNumber{expression.UnaryExpressionStub{Child: element}}
	}
	return nil
}

// listOfElements corrects IN with an ENUM or SET at its left as withElements corrects =. It leaves a list that has both texts
// and numbers as it is, and one that go-mysql-server compares correctly (stays).
func listOfElements(ctx *gms.Context, left, right gms.Expression) (gms.Expression, error) {
	list, ok := right.(expression.Tuple)
	typ := left.Type(ctx)
	if !ok || !isElement(typ) {
		return nil, nil
	}
	texts, numbers, stays := 0, 0, true
	for _, e := range list {
		switch of := e.Type(ctx); {
		case types.IsText(of), isElement(of):
			texts++
			stays = stays && isItem(ctx, typ, e)
		case types.IsNumber(of):
			numbers++
			stays = stays && isPlace(ctx, typ, e)
		}
	}
	switch {
	case stays, texts > 0 && numbers > 0:
		return nil, nil
	case texts > 0:
		return expression.NewInTuple(newAsText(ctx, left), list), nil
	}
	return expression.NewInTuple(&elementNumber{expression.UnaryExpressionStub{Child: left}}, list), nil
}

// elementInQuery corrects IN of a subquery as withElements corrects =.
func elementInQuery(ctx *gms.Context, in *plan.InSubquery) (gms.Expression, error) {
	query, ok := in.RightChild.(*plan.Subquery)
	typ := in.LeftChild.Type(ctx)
	if !ok || !isElement(typ) {
		return nil, nil
	}
	columns := query.Query.Schema(ctx)
	if len(columns) != 1 {
		return nil, nil
	}
	switch of := columns[0].Type; {
	case types.IsText(of):
		return in.WithChildren(ctx, newAsText(ctx, in.LeftChild), query)
	case types.IsNumber(of):
		return in.WithChildren(ctx, &elementNumber{expression.UnaryExpressionStub{Child: in.LeftChild}}, query)
	}
	return nil, nil
}

// isItem reports whether e is a constant text that can be looked up in an index of an ENUM or SET:
// it equals a value of the type exactly if it equals the value's text.
func isItem(ctx *gms.Context, typ gms.Type, e gms.Expression) bool {
	l, ok := e.(*expression.Literal)
	if !ok {
		return false
	}
	s, ok := l.Value().(string)
	if !ok {
		return false
	}
	v, _, err := typ.Convert(ctx, s)
	if err != nil {
		return false
	}
	text, _, err := types.ConvertToCollatedString(ctx, v, typ)
	if err != nil {
		return false
	}
	c, isCollated := typ.(gms.TypeWithCollation)
	if !isCollated || c.Collation().Sorter() == nil {
		return text == s
	}
	weight := c.Collation().Sorter()
	return weightsOf(text, weight) == weightsOf(s, weight)
}

// isPlace reports whether e is a constant number that a value of an ENUM or SET may have.
func isPlace(ctx *gms.Context, typ gms.Type, e gms.Expression) bool {
	l, ok := e.(*expression.Literal)
	if !ok || !types.IsInteger(l.Type(ctx)) {
		return false
	}
	_, _, err := typ.Convert(ctx, l.Value())
	return err == nil
}

// Type implements gms.Expression.
func (*elementNumber) Type(*gms.Context) gms.Type { return types.Uint64 }

// String implements gms.Expression.
func (n *elementNumber) String() string { return n.Child.String() }

// CollationCoercibility implements gms.CollationCoercible.
func (*elementNumber) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression.
func (n *elementNumber) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := n.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	v, _, err = n.Child.Type(ctx).Convert(ctx, v) // an expression may return the text
	if err != nil {
		return nil, err
	}
	number, _, err := types.Uint64.Convert(ctx, v)
	return number, err
}

// WithChildren implements gms.Expression.
func (n *elementNumber) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(n, len(children), 1)
	}
	return &elementNumber{expression.UnaryExpressionStub{Child: children[0]}}, nil
}
