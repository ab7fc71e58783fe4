package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server merges columns of different collations in the order of their indexes, although
// the two orders differ. It also makes comparisons that MySQL refuses.

// columnCoercibility and explicitCoercibility are the strengths of a column's collation and of
// COLLATE; the lower number is the stronger.
const (
	explicitCoercibility byte = 0
	columnCoercibility   byte = 2
)

// MixedCollations is a rule for comparisons of columns of different collations. It converts the
// column that does not have the collation of the comparison, so that only the other column's index
// can be used. It refuses the comparison if neither collation takes precedence, unless a side
// is a column of a subquery (isOfSubquery). A literal or a variable has the collation of the column
// that it is compared with.
func MixedCollations(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	derived := columnsOfSubqueries(ctx, n)
	return transform.NodeExprsWithOpaque(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		c, ok := e.(expression.Comparer)
		if !ok {
			return e, transform.SameTree, nil
		}
		left, leftStrength, hasLeft := ownCollation(ctx, c.Left())
		right, rightStrength, hasRight := ownCollation(ctx, c.Right())
		if !hasLeft || !hasRight || left == right {
			return e, transform.SameTree, nil
		}
		wanted, ok := precedent(left, leftStrength, right, rightStrength)
		switch {
		case !ok && (isOfSubquery(c.Left(), derived) || isOfSubquery(c.Right(), derived)):
			return e, transform.SameTree, nil
		case !ok:
			return nil, transform.SameTree, myerr.MixedCollations.New(left.Name(), strength(leftStrength), right.Name(), strength(rightStrength), operatorOf(e))
		}
		l, r := inCollation(c.Left(), left, wanted), inCollation(c.Right(), right, wanted)
		changed, err := e.WithChildren(ctx, l, r)
		return changed, transform.NewTree, err
	})
}

// ownCollation returns the collation of a column of text or binary strings, or of COLLATE. It
// returns false for other expressions, and for columns without a collation, such as JSON_TABLE's.
func ownCollation(ctx *gms.Context, e gms.Expression) (c gms.CollationID, coercibility byte, ok bool) {
	switch e.(type) {
	case *expression.GetField:
		coercibility = columnCoercibility
	case *expression.CollatedExpression:
		coercibility = explicitCoercibility
	default:
		return 0, 0, false
	}
	t, ok := e.Type(ctx).(gms.StringType)
	if !ok || t.Collation() == gms.Collation_Unspecified {
		return 0, 0, false
	}
	return t.Collation(), coercibility, true
}

// precedent returns the collation that takes precedence: the binary one, the stronger one, or, with
// equal strengths, the one that compares by bytes or has the larger character set. It returns false
// if neither does.
func precedent(a gms.CollationID, strengthA byte, b gms.CollationID, strengthB byte) (gms.CollationID, bool) {
	switch {
	case a == gms.Collation_binary || b == gms.Collation_binary:
		return gms.Collation_binary, true
	case strengthA < strengthB:
		return a, true
	case strengthB < strengthA:
		return b, true
	case strengthA == explicitCoercibility:
		return 0, false
	case a.CharacterSet() == b.CharacterSet() && isByBytes(a), contains(a.CharacterSet(), b.CharacterSet()):
		return a, true
	case a.CharacterSet() == b.CharacterSet() && isByBytes(b), contains(b.CharacterSet(), a.CharacterSet()):
		return b, true
	}
	return 0, false
}

func isByBytes(c gms.CollationID) bool { return strings.HasSuffix(c.Name(), "_bin") }

// contains reports whether the character set a has all characters of b, and more.
func contains(a, b gms.CharacterSetID) bool {
	return a.MaxLength() > b.MaxLength() || (a != b && b == gms.CharacterSet_ascii)
}

// columnsOfSubqueries returns the columns of the subqueries and views among the tables of a plan.
func columnsOfSubqueries(ctx *gms.Context, n gms.Node) (all gms.ColSet) {
	transform.InspectWithOpaque(ctx, n, func(_ *gms.Context, n gms.Node) bool {
		if q, ok := n.(*plan.SubqueryAlias); ok {
			all = all.Union(q.Columns())
		}
		return true
	})
	return all
}

// isOfSubquery reports whether a column belongs to a subquery or view. Such a column may be
// computed from a literal, whose collation is weaker, but the column does not show that.
func isOfSubquery(e gms.Expression, derived gms.ColSet) bool {
	f, ok := e.(*expression.GetField)
	return ok && (f.Database() == "" || derived.Contains(f.Id()))
}

// strength returns MySQL's word for the strength of a collation.
func strength(coercibility byte) string {
	if coercibility == explicitCoercibility {
		return "EXPLICIT"
	}
	return "IMPLICIT"
}

// operatorOf returns the operator of a comparison.
func operatorOf(e gms.Expression) string {
	switch e.(type) {
	case *expression.NullSafeEquals:
		return "<=>"
	case *expression.LessThan:
		return "<"
	case *expression.LessThanOrEqual:
		return "<="
	case *expression.GreaterThan:
		return ">"
	case *expression.GreaterThanOrEqual:
		return ">="
	}
	return "="
}

// inCollation returns a string in another collation.
func inCollation(e gms.Expression, has, wanted gms.CollationID) gms.Expression {
	if has == wanted {
		return e
	}
	return &recollated{expression.UnaryExpressionStub{Child: e}, wanted}
}

// A recollated is a text with another collation.
type recollated struct {
	expression.UnaryExpressionStub
	collation gms.CollationID
}

var (
	_ gms.Expression         = (*recollated)(nil)
	_ gms.CollationCoercible = (*recollated)(nil)
)

// String implements gms.Expression.
func (r *recollated) String() string { return r.Child.String() + " COLLATE " + r.collation.Name() }

// Type implements gms.Expression.
func (r *recollated) Type(*gms.Context) gms.Type {
	if r.collation == gms.Collation_binary {
		return types.LongBlob
	}
	return types.CreateLongText(r.collation)
}

// CollationCoercibility implements gms.CollationCoercible.
func (r *recollated) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return r.collation, columnCoercibility
}

// Eval implements gms.Expression.
func (r *recollated) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := r.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	v, _, err = r.Type(ctx).Convert(ctx, v)
	return v, err
}

// WithChildren implements gms.Expression.
func (r *recollated) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(r, len(children), 1)
	}
	return &recollated{expression.UnaryExpressionStub{Child: children[0]}, r.collation}, nil
}
