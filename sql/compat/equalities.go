package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server does not carry constants over the equalities of a join.

// MoveJoinConds is the name of the rule that turns a join's conditions on one table into
// filters.
const MoveJoinConds = "moveJoinConditionsToFilter"

// withEqualities makes a rule see the conditions that the equalities of an inner join imply, as
// MySQL does: a = b AND a = 5 imply b = 5. go-mysql-server first looks for indexes by each table's
// own conditions. Without b = 5 it may read the whole table of b.
func withEqualities(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return changedFirst(apply, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		if !n.Resolved() {
			return n, transform.SameTree, nil
		}
		return transform.Node(ctx, n, equateJoin)
	})
}

// equateJoin adds the implied equalities to an inner join. It derives them from the join's
// conditions, those of joins below it, and those of a filter over it.
func equateJoin(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	var given []gms.Expression
	at := n
	f, isFilter := n.(*plan.Filter)
	if isFilter {
		given, at = expression.SplitConjunction(ctx, f.Expression), f.Child
	}
	join, ok := at.(*plan.JoinNode)
	if !ok || join.Op != plan.JoinTypeInner {
		return n, transform.SameTree, nil
	}
	given, ok = conditionsOf(ctx, join, given)
	if !ok {
		return n, transform.SameTree, nil
	}
	implied := impliedEqualities(ctx, given)
	if len(implied) == 0 {
		return n, transform.SameTree, nil
	}
	if isFilter {
		return plan.NewFilter(expression.JoinAnd(append([]gms.Expression{f.Expression}, implied...)...), join), transform.NewTree, nil
	}
	return join.WithFilter(expression.JoinAnd(append([]gms.Expression{join.Filter}, implied...)...)), transform.NewTree, nil
}

// conditionsOf appends to found the conditions that every row of a tree of joins meets. It returns
// false if one of the joins is not an inner one: go-mysql-server mishandles conditions over
// outer joins, so none are added there.
func conditionsOf(ctx *gms.Context, n gms.Node, found []gms.Expression) ([]gms.Expression, bool) {
	switch n := n.(type) {
	case *plan.Filter:
		return conditionsOf(ctx, n.Child, append(found, expression.SplitConjunction(ctx, n.Expression)...))
	case *plan.JoinNode:
		if n.Op != plan.JoinTypeInner && n.Op != plan.JoinTypeCross {
			return nil, false
		}
		if n.Filter != nil {
			found = append(found, expression.SplitConjunction(ctx, n.Filter)...)
		}
		found, ok := conditionsOf(ctx, n.Left(), found)
		if !ok {
			return nil, false
		}
		return conditionsOf(ctx, n.Right(), found)
	}
	return found, true
}

// A columnName identifies a column of one of the statement's tables.
type columnName struct {
	table  gms.TableId
	column gms.ColumnId
}

func nameOf(f *expression.GetField) columnName { return columnName{f.TableId(), f.Id()} }

// impliedEqualities returns column = literal for each column that has no given literal itself, but
// equals a column that has one.
func impliedEqualities(ctx *gms.Context, given []gms.Expression) (implied []gms.Expression) {
	var pairs [][2]*expression.GetField
	known := make(map[columnName]*expression.Literal)
	for _, e := range given {
		eq, ok := e.(*expression.Equals)
		if !ok {
			continue
		}
		left, right := eq.Left(), eq.Right()
		if _, ok := left.(*expression.Literal); ok {
			left, right = right, left
		}
		column, ok := left.(*expression.GetField)
		if !ok {
			continue
		}
		switch right := right.(type) {
		case *expression.Literal:
			if holdsForEquals(column.Type(ctx), right.Type(ctx)) {
				known[nameOf(column)] = right
			}
		case *expression.GetField:
			if column.Type(ctx).Equals(right.Type(ctx)) {
				pairs = append(pairs, [2]*expression.GetField{column, right}, [2]*expression.GetField{right, column})
			}
		}
	}
	for again := len(known) > 0; again; {
		again = false
		for _, p := range pairs {
			value, ok := known[nameOf(p[0])]
			if _, isKnown := known[nameOf(p[1])]; !ok || isKnown {
				continue
			}
			known[nameOf(p[1])], again = value, true
			implied = append(implied, expression.NewEquals(p[1], value))
		}
	}
	return implied
}

// holdsForEquals reports whether a = literal and a = b imply b = literal, for columns a and b of this
// type. They do not if a collation equates strings that differ as numbers or as bytes.
func holdsForEquals(column, literal gms.Type) bool {
	if types.IsInteger(column) {
		return types.IsInteger(literal)
	}
	c, columnIsText := column.(gms.StringType)
	l, literalIsText := literal.(gms.StringType)
	return columnIsText && literalIsText && !types.IsBinaryType(c) && !types.IsBinaryType(l)
}
