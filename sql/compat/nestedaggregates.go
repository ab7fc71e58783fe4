package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// An aggregate in a subquery may have the same text as one of the outer query, as in HAVING SUM(v)
// > (SELECT SUM(v) FROM the same table). go-mysql-server mistakes it for that one. The subquery
// then returns a row for each row of its table. This file changes the text of the inner aggregate.

// nestedName is the name of the function that encloses the argument of a nested aggregate. No
// client can write it.
const nestedName = "farmsql.nested"

// nestAggregates encloses the arguments of aggregates in subqueries, once for each outer query that
// has an aggregate of the same name. It handles only subqueries that are planned after the outer
// query's aggregates. Subqueries in WHERE and FROM are planned before.
func nestAggregates(query string, stmt sqlparser.Statement) {
	if !containsTwice(query, "select") {
		return
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		s, ok := node.(*sqlparser.Select)
		if !ok {
			return true, nil
		}
		own, subqueries := make(map[string]bool), []*sqlparser.Subquery(nil)
		_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
			switch n := node.(type) {
			case *sqlparser.FuncExpr:
				own[n.Name.Lowered()] = true
			case *sqlparser.Subquery:
				subqueries = append(subqueries, n)
				return false, nil
			}
			return true, nil
		}, s.SelectExprs, s.Having, s.OrderBy)
		for _, q := range subqueries {
			nestThose(q, own, sharesTable(q, s.From))
		}
		return true, nil
	}, stmt)
}

// nestThose encloses the arguments of the aggregates in q with the given names. It handles
// aggregates of columns only if sameTable is set: q reads a table of the same name as the outer
// query. Otherwise their texts differ anyway, unless the aggregate belongs to the outer query.
func nestThose(q *sqlparser.Subquery, names map[string]bool, sameTable bool) {
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		f, ok := node.(*sqlparser.FuncExpr)
		if !ok || f.Over != nil || !names[f.Name.Lowered()] || !planbuilder.IsAggregateFunc(f.Name.Lowered()) || len(f.Exprs) == 0 {
			return true, nil
		}
		if a, ok := f.Exprs[0].(*sqlparser.AliasedExpr); ok && (sameTable || !hasColumns(f)) {
			a.Expr = &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(nestedName), Exprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: a.Expr}}}
		}
		return true, nil
	}, q)
}

// sharesTable reports whether a table of a subquery has the same name as one of the tables of the outer query.
func sharesTable(q *sqlparser.Subquery, around sqlparser.TableExprs) bool {
	shares := false
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		if t, ok := node.(*sqlparser.AliasedTableExpr); ok && isAmong(tableOf(t), around) {
			shares = true
		}
		return !shares, nil
	}, q)
	return shares
}

// hasColumns reports whether an expression has columns.
func hasColumns(e sqlparser.Expr) bool {
	has := false
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		if _, ok := node.(*sqlparser.ColName); ok {
			has = true
		}
		return !has, nil
	}, e)
	return has
}

// containsTwice reports whether s contains the lower-case ASCII word at least twice, in any case of
// letters.
func containsTwice(s, word string) bool {
	first := indexFold(s, word)
	return first >= 0 && ContainsFold(s[first+len(word):], word)
}

var nestedArgument = gms.Function1{Name: nestedName, Fn: func(_ *gms.Context, e gms.Expression) gms.Expression {
	return newInnerArgument(e)
}}

// An innerArgument is the argument of a nested aggregate.
type innerArgument struct{ expression.UnaryExpressionStub }

var (
	_ gms.Expression         = (*innerArgument)(nil)
	_ gms.CollationCoercible = (*innerArgument)(nil)
)

func newInnerArgument(e gms.Expression) *innerArgument {
	return &innerArgument{expression.UnaryExpressionStub{Child: e}}
}

// Type implements gms.Expression.
func (n *innerArgument) Type(ctx *gms.Context) gms.Type { return n.Child.Type(ctx) }

// Eval implements gms.Expression.
func (n *innerArgument) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	return n.Child.Eval(ctx, row)
}

// String implements gms.Expression. Only the parentheses distinguish the aggregate from the one of the outer query.
func (n *innerArgument) String() string { return "(" + n.Child.String() + ")" }

// CollationCoercibility implements gms.CollationCoercible.
func (n *innerArgument) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, n.Child)
}

// WithChildren implements gms.Expression.
func (n *innerArgument) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(n, len(children), 1)
	}
	return newInnerArgument(children[0]), nil
}
