package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server's hash joins compare strings by their bytes if the join has several conditions.
// They compare the number of an ENUM or SET with a text.

// hashByWeights makes hash joins with several conditions find strings that are equal by their
// collation; go-mysql-server does so only for a single condition.
func hashByWeights(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	h, ok := n.(*plan.HashLookup)
	if !ok {
		return n, transform.SameTree, nil
	}
	left, leftIsTuple := h.LeftProbeKey.(expression.Tuple)
	right, rightIsTuple := h.RightEntryKey.(expression.Tuple)
	if !leftIsTuple || !rightIsTuple || len(left) != len(right) {
		return n, transform.SameTree, nil
	}
	var l, r expression.Tuple
	changed, dropsUnlike := false, false
	for i := range left {
		a, aIsText := collatedText(ctx, left[i])
		b, bIsText := collatedText(ctx, right[i])
		switch {
		case hashOtherwise(ctx, left[i], right[i]):
			dropsUnlike = true
		case !aIsText && !bIsText:
			l, r = append(l, left[i]), append(r, right[i])
			continue
		case aIsText && bIsText && a == b:
			l, r = append(l, newWeights(left[i], a)), append(r, newWeights(right[i], a))
		}
		// The key leaves out any other pair, such as texts of different collations: the join's own
		// conditions check it.
		changed = true
	}
	if dropsUnlike && len(l) == 0 { // no key is left: all rows have one key, so each meets each
		one := expression.Tuple{expression.NewLiteral(int64(1), types.Int64)}
		l, r = one, one
	}
	if !changed || len(l) == 0 {
		return n, transform.SameTree, nil
	}
	return plan.NewHashLookup(ctx, h.Child, r, l, h.JoinType), transform.NewTree, nil
}

// hashOtherwise reports whether equal values of two expressions may have different hashes: one is
// an ENUM or SET, or its text, and the other's type differs and is not a number.
func hashOtherwise(ctx *gms.Context, a, b gms.Expression) bool {
	s, t := a.Type(ctx), b.Type(ctx)
	if s.Equals(t) || types.IsNumber(s) || types.IsNumber(t) {
		return false
	}
	return slices.ContainsFunc([]gms.Expression{a, b}, func(e gms.Expression) bool {
		_, isText := e.(*asText)
		return isText || isElement(e.Type(ctx))
	})
}

// collatedText returns the collation of an expression that is text.
func collatedText(ctx *gms.Context, e gms.Expression) (gms.CollationID, bool) {
	if t, ok := e.Type(ctx).(gms.StringType); ok && types.IsTextOnly(t) {
		return t.Collation(), true
	}
	return 0, false
}

// A weightsExpr returns the collation weights of a text, which are the same for equal texts.
type weightsExpr struct {
	expression.UnaryExpressionStub
	collation gms.CollationID
}

var _ gms.Expression = (*weightsExpr)(nil)

func newWeights(e gms.Expression, c gms.CollationID) *weightsExpr {
	return &weightsExpr{expression.UnaryExpressionStub{Child: e}, c}
}

// Type implements gms.Expression.
func (w *weightsExpr) Type(*gms.Context) gms.Type { return types.Uint64 }

// String implements gms.Expression.
func (w *weightsExpr) String() string { return w.Child.String() }

// Eval implements gms.Expression.
func (w *weightsExpr) Eval(ctx *gms.Context, r gms.Row) (any, error) {
	v, err := w.Child.Eval(ctx, r)
	if err != nil || v == nil {
		return nil, err
	}
	if v, err = gms.UnwrapAny(ctx, v); err != nil {
		return nil, err
	}
	s, ok := row.Text(v)
	if !ok {
		return nil, gms.ErrInvalidType.New(v)
	}
	return w.collation.HashToUint(s)
}

// WithChildren implements gms.Expression.
func (w *weightsExpr) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(w, len(children), 1)
	}
	return newWeights(children[0], w.collation), nil
}
