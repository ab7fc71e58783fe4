package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// A boundedText is a text that becomes a decimal. go-mysql-server computes with any exponent, 1e111111111, for minutes,
// and no KILL ends that.
type boundedText struct{ expression.UnaryExpressionStub }

var _ gms.CollationCoercible = (*boundedText)(nil)

// newBounded returns a text, or a JSON document, with bounded exponents; false for other expressions, and for constants whose
// exponents are not great.
func newBounded(ctx *gms.Context, e gms.Expression) (gms.Expression, bool) {
	if !e.Resolved() {
		return e, false
	}
	t := e.Type(ctx)
	if !types.IsText(t) && !types.IsJSON(t) {
		return e, false
	}
	switch e := e.(type) {
	case *boundedText, *expression.BindVar:
		return e, false
	case *expression.Literal:
		text, isText := e.Value().(string)
		bounded := row.BoundedText(text)
		if !isText || bounded == text {
			return e, false
		}
		return expression.NewLiteral(bounded, t), true
	}
	return &boundedText{expression.UnaryExpressionStub{Child: e}}, true
}

// boundOperands bounds the texts of operands that e compares with decimals; false if there are none.
func boundOperands(ctx *gms.Context, e gms.Expression, operands []gms.Expression) (isChanged bool) {
	if _, ok := e.(expression.Comparer); ok && len(operands) == 2 {
		if _, isTuple := operands[1].(expression.Tuple); isTuple { // it is converted to the types of the left one
			operands[1], isChanged = boundedKey(ctx, operands[1], operands[0].Type(ctx))
			return isChanged
		}
	}
	compared := comparedOf(e, len(operands))
	if !slices.ContainsFunc(compared, func(i int) bool { return types.IsDecimal(operands[i].Type(ctx)) }) {
		return false
	}
	for _, i := range compared {
		if bounded, ok := newBounded(ctx, operands[i]); ok {
			operands[i], isChanged = bounded, true
		}
	}
	return isChanged
}

// comparedOf returns the places of the operands that are compared, and are no results.
func comparedOf(e gms.Expression, operands int) (at []int) {
	switch e := e.(type) {
	case *plan.InSubquery, *function.NullIf: // see nullIf
		return nil
	case *expression.Case:
		if e.Expr == nil {
			return nil
		}
		at = append(at, 0)
		for i := range e.Branches {
			at = append(at, 1+2*i)
		}
		return at
	}
	for i := range operands {
		at = append(at, i)
	}
	return at
}

// A nullIf is NULLIF of a text and a decimal, which compares the text with a bounded exponent, and returns the text itself.
type nullIf struct {
	*function.NullIf
	equal gms.Expression
}

// newNullIf returns nil if NULLIF compares no text with a decimal.
func newNullIf(ctx *gms.Context, n *function.NullIf) gms.Expression {
	operands := []gms.Expression{n.LeftChild, n.RightChild}
	if !boundOperands(ctx, expression.NewEquals(n.LeftChild, n.RightChild), operands) {
		return nil
	}
	return &nullIf{n, expression.NewEquals(operands[0], operands[1])}
}

// Eval implements gms.Expression.
func (n *nullIf) Eval(ctx *gms.Context, r gms.Row) (any, error) {
	isEqual, err := n.equal.Eval(ctx, r)
	if err != nil || isEqual == true {
		return nil, err
	}
	return n.LeftChild.Eval(ctx, r)
}

// WithChildren implements gms.Expression.
func (n *nullIf) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := n.NullIf.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	plain := e.(*function.NullIf)
	if bounded := newNullIf(ctx, plain); bounded != nil {
		return bounded, nil
	}
	return plain, nil
}

// BoundedTexts bounds the texts of expressions that are evaluated without the corrections of Compared.
func BoundedTexts(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	switch e := e.(type) {
	case *function.NullIf:
		if bounded := newNullIf(ctx, e); bounded != nil {
			return bounded, transform.NewTree, nil
		}
	case expression.Comparer, *expression.Between, *expression.Case:
		operands := slices.Clone(e.Children())
		if boundOperands(ctx, e, operands) {
			changed, err := e.WithChildren(ctx, operands...)
			return changed, transform.NewTree, err
		}
	}
	return boundedArgument(ctx, e)
}

// boundedArgument bounds the text of which an expression other than a comparison makes a decimal.
func boundedArgument(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	makesDecimal := false
	switch e := e.(type) {
	case *gms.ColumnDefaultValue:
		makesDecimal = e != nil && e.OutType != nil && types.IsDecimal(e.OutType)
	case *expression.Convert:
		makesDecimal = types.IsDecimal(e.Type(ctx))
	case *function.Round, *function.Truncate, *expression.UnaryMinus:
		makesDecimal = true
	}
	if !makesDecimal {
		return e, transform.SameTree, nil
	}
	return withBoundedChild(ctx, e)
}

// BoundedDefaults is a rule that bounds the texts that are defaults of new columns.
func BoundedDefaults(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if text := ctx.Query(); text != "" && !ContainsFold(text, "default") && !ContainsFold(text, "execute") {
		return n, transform.SameTree, nil
	}
	return transform.Node(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		switch n.(type) {
		case *plan.CreateTable, *plan.AddColumn, *plan.ModifyColumn, *plan.AlterDefaultSet:
			return transform.OneNodeExpressions(ctx, n, boundedDefault)
		}
		return n, transform.SameTree, nil
	})
}

// boundedDefault bounds a default that is a constant. Others are kept as texts, and are bounded when they are evaluated.
func boundedDefault(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	d, ok := e.(*gms.ColumnDefaultValue)
	if !ok || d == nil || d.OutType == nil || !types.IsDecimal(d.OutType) {
		return e, transform.SameTree, nil
	}
	if _, ok := d.Expr.(*expression.Literal); !ok {
		return e, transform.SameTree, nil
	}
	return withBoundedChild(ctx, d)
}

// BoundKeys bounds the texts of a join's keys that are compared as decimals. It changes the node itself, which keeps rows.
func BoundKeys(ctx *gms.Context, h *plan.HashLookup) {
	if key, ok := boundedKey(ctx, h.RightEntryKey, h.CompareType); ok {
		h.RightEntryKey = key
	}
	if key, ok := boundedKey(ctx, h.LeftProbeKey, h.CompareType); ok {
		h.LeftProbeKey = key
	}
}

// boundedKey is newBounded of a key that is converted to a type, or of a tuple of them.
func boundedKey(ctx *gms.Context, key gms.Expression, t gms.Type) (bounded gms.Expression, isChanged bool) {
	all, isTuple := key.(expression.Tuple)
	of, hasTypes := t.(types.TupleType)
	if !isTuple || !hasTypes || len(all) != len(of) {
		if !types.IsDecimal(t) {
			return key, false
		}
		return newBounded(ctx, key)
	}
	for i, e := range all {
		bounded, ok := boundedKey(ctx, e, of[i])
		if !ok {
			continue
		}
		if !isChanged {
			all, isChanged = slices.Clone(all), true
		}
		all[i] = bounded
	}
	return all, isChanged
}

// withBoundedChild bounds the first child of an expression that makes a decimal of it.
func withBoundedChild(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	children := e.Children()
	bounded, ok := newBounded(ctx, children[0])
	if !ok {
		return e, transform.SameTree, nil
	}
	e, err := e.WithChildren(ctx, append([]gms.Expression{bounded}, children[1:]...)...)
	return e, transform.NewTree, err
}

// Type implements gms.Expression.
func (b *boundedText) Type(ctx *gms.Context) gms.Type { return b.Child.Type(ctx) }

// String implements gms.Expression.
func (b *boundedText) String() string { return b.Child.String() }

// CollationCoercibility implements gms.CollationCoercible.
func (b *boundedText) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, b.Child)
}

// Eval implements gms.Expression.
func (b *boundedText) Eval(ctx *gms.Context, r gms.Row) (any, error) {
	v, err := b.Child.Eval(ctx, r)
	if err != nil {
		return nil, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return nil, err
	}
	return row.BoundedNumber(v), nil
}

// WithChildren implements gms.Expression.
func (b *boundedText) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(b, len(children), 1)
	}
	return &boundedText{expression.UnaryExpressionStub{Child: children[0]}}, nil
}
