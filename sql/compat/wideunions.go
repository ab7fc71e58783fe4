package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// In a UNION, INTERSECT or EXCEPT of BIGINT UNSIGNED with signed integers, go-mysql-server converts
// both sides to BIGINT. Values beyond BIGINT become negative, and equal to other values.

// wideDigits is the precision of the decimal that holds BIGINT and BIGINT UNSIGNED.
const wideDigits = 20

// WideUnions is a rule that makes set operations convert BIGINT UNSIGNED and signed integers to
// DECIMAL(20, 0), as MySQL does.
func WideUnions(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	insert, ok := n.(*plan.InsertInto)
	if !ok {
		return withSubqueries(ctx, n, wideUnions)
	}
	// An INSERT's source is not among its children.
	source, same, err := withSubqueries(ctx, insert.Source, wideUnions)
	if err != nil || bool(same) {
		return n, transform.SameTree, err
	}
	return insert.WithSource(source), transform.NewTree, nil
}

// wideUnions changes the set operations of a plan, the inner ones first: an outer one's type
// depends on the types of the inner ones.
func wideUnions(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	return transform.NodeWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		s, ok := n.(*plan.SetOp)
		if !ok {
			return n, transform.SameTree, nil
		}
		if err := checkUnionOrder(ctx, s); err != nil {
			return n, transform.SameTree, err
		}
		left, leftIsProject := s.Left().(*plan.Project)
		right, rightIsProject := s.Right().(*plan.Project)
		if !leftIsProject || !rightIsProject || len(left.Projections) != len(right.Projections) {
			return n, transform.SameTree, nil
		}
		return wideUnion(ctx, s, left, right)
	})
}

// wideUnion changes the conversions of a set operation's sides.
func wideUnion(ctx *gms.Context, s *plan.SetOp, left, right *plan.Project) (gms.Node, transform.TreeIdentity, error) {
	same := transform.SameTree
	lefts, rights := append([]gms.Expression(nil), left.Projections...), append([]gms.Expression(nil), right.Projections...)
	for i := range lefts {
		l := signedColumn(ctx, lefts[i], left.Child, i)
		r := signedColumn(ctx, rights[i], right.Child, i)
		if l != nil && r != nil && IsWide(l.Type(ctx), r.Type(ctx)) {
			lefts[i], rights[i], same = asWide(lefts[i], l), asWide(rights[i], r), transform.NewTree
		}
	}
	if same {
		return s, same, nil
	}
	changed, err := s.WithChildren(ctx, plan.NewProject(lefts, left.Child), plan.NewProject(rights, right.Child))
	return changed, same, err
}

// signedColumn returns the column, with its own type, that an expression of a set operation's side
// converts to BIGINT. It returns nil if the expression does not convert a column: a BIGINT column
// needs no conversion.
func signedColumn(ctx *gms.Context, e gms.Expression, child gms.Node, at int) *expression.GetField {
	alias, ok := e.(*expression.Alias)
	columns := child.Schema(ctx)
	if !ok || !types.Int64.Equals(alias.Child.Type(ctx)) || at >= len(columns) {
		return nil
	}
	of := alias.Child
	if c, isConverted := of.(*expression.Convert); isConverted {
		of = c.Child
	}
	g, ok := of.(*expression.GetField)
	if !ok || g.Name() != columns[at].Name {
		return nil
	}
	return expression.NewGetFieldWithTable(g.Index(), int(g.TableId()), columns[at].Type, g.Database(), g.Table(), g.Name(), g.IsNullable(ctx))
}

// asWide converts a column to DECIMAL(20, 0). The conversion has the name of the one that it replaces.
func asWide(replaced gms.Expression, column *expression.GetField) gms.Expression {
	return expression.NewAlias(replaced.(*expression.Alias).Name(), expression.NewConvertWithLengthAndScale(column, expression.ConvertToDecimal, wideDigits, 0))
}

// IsWide reports whether only a DECIMAL can hold the whole numbers of both types.
func IsWide(a, b gms.Type) bool {
	isWhole := func(t gms.Type) bool { return types.IsInteger(t) || types.IsDecimal(t) }
	if !isWhole(a) || !isWhole(b) {
		return false
	}
	return types.IsDecimal(a) || types.IsDecimal(b) || (a == types.Uint64 && types.IsSigned(b)) || (b == types.Uint64 && types.IsSigned(a))
}

// validateUnions is the name of the rule that refuses set operations whose sides have different types.
const validateUnions = "validateUnionSchemasMatch"

// withWideUnions wraps the rule validateUnionSchemasMatch. It accepts a set operation in which only
// one side has become a decimal: the other side is converted when the operation runs.
func withWideUnions(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err != nil && onlyWide(ctx, n) {
			return n, transform.SameTree, nil
		}
		return out, same, err
	}
}

// onlyWide reports whether the sides of all set operations differ only between whole numbers and decimals.
func onlyWide(ctx *gms.Context, n gms.Node) bool {
	only := true
	transform.InspectWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) bool {
		s, ok := n.(*plan.SetOp)
		if !ok {
			return only
		}
		left, right := s.Left().Schema(ctx), s.Right().Schema(ctx)
		for i := range left {
			only = only && len(left) == len(right) && (left[i].Type.Equals(right[i].Type) || IsWide(left[i].Type, right[i].Type))
		}
		return only
	})
	return only
}
