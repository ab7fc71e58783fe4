package compat

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// This file rewrites conditions into a form that go-mysql-server's rules handle correctly,
// and for which they find indexes in every kind of statement.

// PlainFilters is a rule that rewrites the conditions of WHERE and ON.
func PlainFilters(ctx *gms.Context, _ *analyzer.Analyzer, n gms.Node, _ *plan.Scope, _ analyzer.RuleSelector, _ *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if !n.Resolved() {
		return n, transform.SameTree, nil
	}
	n, same, err := changeFilters(ctx, n)
	switch n := n.(type) {
	case *plan.DeleteFrom:
		if err != nil || !isElsewhere(ctx, n.Child) {
			return n, same, err
		}
		whole, err := n.WithChildren(ctx, plan.NewFilter(newAside(expression.NewLiteral(true, types.Boolean)), n.Child))
		return whole, transform.NewTree, err
	case *plan.Update: // UPDATE and DELETE depend on the order of their tables, which leftJoin would change
		return n, same, err
	}
	if err != nil {
		return n, same, err
	}
	turned, unchanged, err := transform.NodeWithOpaque(ctx, n, leftJoin)
	return turned, same && unchanged, err
}

// isElsewhere reports whether a node is a table outside of the current database. go-mysql-server
// turns a DELETE without a condition into a TRUNCATE unless something forbids it, but it looks for
// that only in the current database.
func isElsewhere(ctx *gms.Context, n gms.Node) bool {
	t, ok := n.(*plan.ResolvedTable)
	return ok && t.SqlDatabase != nil && !strings.EqualFold(t.SqlDatabase.Name(), ctx.GetCurrentDatabase())
}

// leftJoin turns a RIGHT JOIN into a LEFT JOIN: go-mysql-server moves conditions below a
// RIGHT JOIN as if no row could be missing.
func leftJoin(_ *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	join, ok := n.(*plan.JoinNode)
	if !ok || join.Op != plan.JoinTypeRightOuter {
		return n, transform.SameTree, nil
	}
	return plan.NewLeftOuterJoin(join.Right(), join.Left(), join.Filter).WithComment(join.Comment()), transform.NewTree, nil
}

func changeFilters(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	n, same, err := transform.NodeWithOpaque(ctx, n, changeNode)
	insert, ok := n.(*plan.InsertInto)
	if err != nil || !ok || insert.Source == nil {
		return n, same, err
	}
	// An INSERT's source is not among its children.
	source, unchanged, err := changeFilters(ctx, insert.Source)
	if err != nil || bool(unchanged) {
		return n, same, err
	}
	return insert.WithSource(source), transform.NewTree, nil
}

// changeNode changes the expressions of one node. In nodes that the switch does not name it changes only
// subqueries, MIN and MAX. A CREATE TABLE, for example, keeps its defaults and checks: their text is stored.
func changeNode(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	change := func(*gms.Context, gms.Expression) (gms.Expression, bool) { return nil, false }
	same, isCondition := transform.SameTree, false
	switch of := n.(type) {
	case *plan.SetOp:
		n, same = withBoundedCounts(ctx, of)
	case *plan.Filter, *plan.JoinNode:
		n, same = withLists(ctx, n)
		change, isCondition = plainCondition, true
	case *plan.Limit, *plan.Offset:
		change = boundedCount
	case *plan.Project, *plan.GroupBy, *plan.Having, *plan.Sort, *plan.Window:
		change = plainRows
	case gms.Expressioner:
	default:
		return n, transform.SameTree, nil
	}
	n, unchanged, err := transform.OneNodeExpressions(ctx, n, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if q, ok := e.(*plan.Subquery); ok {
			if err := ownAggregates(ctx, q.Query); err != nil {
				return e, transform.SameTree, err
			}
			query, same, err := changeFilters(ctx, q.Query)
			if err != nil || bool(same) {
				return e, transform.SameTree, err
			}
			return q.WithQuery(query), transform.NewTree, nil
		}
		if changed, ok := change(ctx, e); ok {
			return changed, transform.NewTree, nil
		}
		if changed, err := leastByText(ctx, e); changed != nil || err != nil {
			return changed, transform.NewTree, err
		}
		if !isCondition {
			return e, transform.SameTree, nil
		}
		if changed, err := withElements(ctx, e); changed != nil || err != nil {
			return changed, transform.NewTree, err
		}
		return e, transform.SameTree, nil
	})
	same = same && unchanged
	switch n.(type) {
	case *plan.Filter, *plan.JoinNode:
		if err == nil {
			n, unchanged, err = oneEquality(ctx, n)
			same = same && unchanged
			n, unchanged = asideCorrelated(ctx, n)
		}
	}
	return n, same && unchanged, err
}

// withLists turns chains of OR or AND in a filter's or join's conditions into lists.
func withLists(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity) {
	switch n := n.(type) {
	case *plan.Filter:
		if e, ok := withoutChains(ctx, n.Expression); ok {
			return plan.NewFilter(e, n.Child), transform.NewTree
		}
	case *plan.JoinNode:
		if n.Filter == nil {
			break
		}
		if e, ok := withoutChains(ctx, n.Filter); ok {
			return n.WithFilter(e), transform.NewTree
		}
	}
	return n, transform.SameTree
}

// plainCondition rewrites a condition for which an index may be used; false for other conditions.
func plainCondition(ctx *gms.Context, e gms.Expression) (gms.Expression, bool) {
	switch e := e.(type) {
	case *expression.Like:
		return withPrefix(ctx, e), true
	case *expression.Between:
		if isElement(e.Val.Type(ctx)) {
			return nil, false
		}
		// go-mysql-server itself does this only in SELECT.
		if _, ok := e.Val.(*expression.GetField); ok {
			return expression.NewAnd(expression.NewGreaterThanOrEqual(e.Val, e.Lower), expression.NewLessThanOrEqual(e.Val, e.Upper)), true
		}
	}
	return plainRows(ctx, e)
}

// oneEquality applies onceEqual to the conditions of a filter or join.
func oneEquality(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	conditions := n.(gms.Expressioner).Expressions()
	same := transform.SameTree
	for i, e := range conditions {
		once, isChanged, err := onceEqual(ctx, e)
		if err != nil {
			return n, transform.SameTree, err
		}
		if isChanged {
			conditions[i], same = once, transform.NewTree
		}
	}
	if same {
		return n, same, nil
	}
	n, err := n.(gms.Expressioner).WithExpressions(ctx, conditions...)
	return n, transform.NewTree, err
}

// onceEqual handles several conditions that fix the value of one column by = or IN. It lets the
// search for indexes see only one of them, and marks the others. go-mysql-server treats two values
// that are not identical as different, which is wrong for strings; for bytes it panics. onceEqual
// walks conjunctions from the top, so that it visits each condition once. It reports whether it has
// changed e.
func onceEqual(ctx *gms.Context, e gms.Expression) (gms.Expression, bool, error) {
	and, ok := e.(*expression.And)
	if !ok {
		return onceEqualBelow(ctx, e)
	}
	all, isChanged := conjuncts(and), false
	for i, e := range all {
		once, changed, err := onceEqualBelow(ctx, e)
		if err != nil {
			return e, false, err
		}
		all[i], isChanged = once, isChanged || changed
	}
	isFixed := make(map[columnName]bool)
	for _, lists := range []bool{false, true} { // an equality is better to look up than a list
		for i, e := range all {
			column, isList := equalColumn(e)
			if column == nil || isList != lists {
				continue
			}
			if isFixed[nameOf(column)] {
				all[i], isChanged = newAside(e), true
			}
			isFixed[nameOf(column)] = true
		}
	}
	if !isChanged {
		return e, false, nil
	}
	return expression.JoinAnd(all...), true, nil
}

// onceEqualBelow applies onceEqual to the operands of a condition, and reports whether one has changed.
func onceEqualBelow(ctx *gms.Context, e gms.Expression) (gms.Expression, bool, error) {
	var changed []gms.Expression
	children := e.Children()
	for i, child := range children {
		once, isChanged, err := onceEqual(ctx, child)
		if err != nil {
			return e, false, err
		}
		if isChanged && changed == nil {
			changed = slices.Clone(children)
		}
		if isChanged {
			changed[i] = once
		}
	}
	if changed == nil {
		return e, false, nil
	}
	e, err := e.WithChildren(ctx, changed...)
	return e, true, err
}

// equalColumn returns the column of a condition of the form column = value or column IN
// (list), and whether it is a list. For other conditions it returns nil.
func equalColumn(e gms.Expression) (column *expression.GetField, isList bool) {
	var c expression.Comparer
	switch e := e.(type) {
	case *expression.Equals:
		c = e
	case *expression.NullSafeEquals:
		c = e
	case *expression.InTuple:
		c, isList = e, true
	default:
		return nil, false
	}
	left, isLeft := c.Left().(*expression.GetField)
	right, isRight := c.Right().(*expression.GetField)
	switch {
	case isLeft && isRight:
		return nil, false
	case isLeft:
		return left, isList
	}
	return right, isList
}

// plainRows replaces comparisons of rows by comparisons of each column, because go-mysql-server's
// comparisons of rows ignore NULL. It replaces IN lists of rows by the equalities that they stand
// for. It returns false for other expressions.
func plainRows(ctx *gms.Context, e gms.Expression) (gms.Expression, bool) {
	switch e := e.(type) {
	case *expression.InTuple:
		return anyOf(ctx, e)
	case *expression.Equals:
		return eachColumn(e, equals)
	case *expression.NullSafeEquals:
		return eachColumn(e, nullSafeEquals)
	}
	return nil, false
}

// eachColumn returns a comparison of rows for equality as comparisons of their columns; false for other operands.
func eachColumn(c expression.Comparer, equal func(l, r gms.Expression) gms.Expression) (gms.Expression, bool) {
	left, leftIsRow := c.Left().(expression.Tuple)
	right, rightIsRow := c.Right().(expression.Tuple)
	if !leftIsRow || !rightIsRow || len(left) != len(right) || len(left) == 0 {
		return nil, false
	}
	all := make([]gms.Expression, len(left))
	for i := range left {
		all[i] = equal(left[i], right[i])
	}
	return expression.JoinAnd(all...), true
}

// anyOfMax is the length of the longest list that becomes a chain of OR.
const anyOfMax = 1000

// anyOf replaces an IN by the OR of the equalities that it stands for, if go-mysql-server's IN
// fails. Its IN of row constructors uses no index. The hash table of its IN finds no TIME, and no
// value that is equal only after a conversion. anyOf returns false for other INs, and for lists of more than anyOfMax.
func anyOf(ctx *gms.Context, in *expression.InTuple) (gms.Expression, bool) {
	list, ok := in.Right().(expression.Tuple)
	if !ok || len(list) == 0 || len(list) > anyOfMax {
		return nil, false
	}
	row, isRow := in.Left().(expression.Tuple)
	if !isRow && !comparedOtherwise(ctx, in.Left(), list) {
		return nil, false
	}
	all := make([]gms.Expression, len(list))
	for i, e := range list {
		if !isRow {
			all[i] = expression.NewEquals(in.Left(), e)
			continue
		}
		equal, ok := eachColumn(expression.NewEquals(row, e), equals)
		if !ok {
			return nil, false // IN reports the error
		}
		all[i] = equal
	}
	return expression.JoinOr(all...), true
}

// comparedOtherwise reports whether a comparison of a column with a value of a list is made in
// another type than the column's, or the column is a TIME.
func comparedOtherwise(ctx *gms.Context, left gms.Expression, list expression.Tuple) bool {
	typ := left.Type(ctx)
	if row.IsTimespan(typ) {
		return true
	}
	for _, e := range list {
		switch of := e.Type(ctx); {
		case of == types.Null:
		case types.IsNumber(typ) != types.IsNumber(of), types.IsTime(typ) && types.IsNumber(of):
			return true
		}
	}
	return false
}

// A like is a LIKE that go-mysql-server evaluates, but does not rewrite into a range: its
// range for LIKE 'a%' ends before 'az' in some collations.
type like struct{ *expression.Like }

// WithChildren implements gms.Expression.
func (l *like) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := l.Like.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &like{e.(*expression.Like)}, nil
}

// withPrefix returns a LIKE. If the LIKE compares a column, withPrefix adds bounds on the column,
// for an index; the bounds admit more strings than the LIKE.
func withPrefix(ctx *gms.Context, l *expression.Like) gms.Expression {
	plain := &like{l}
	column, isColumn := l.LeftChild.(*expression.GetField)
	pattern, isLiteral := l.RightChild.(*expression.Literal)
	if !isColumn || !isLiteral || l.Escape != nil {
		return plain
	}
	typ, isText := column.Type(ctx).(gms.StringType)
	s, isString := pattern.Value().(string)
	if !isText || !isString || typ.CharacterSet() != gms.CharacterSet_utf8mb4 {
		return plain
	}
	if c, _ := plain.CollationCoercibility(ctx); c != typ.Collation() || c.Sorter() == nil {
		return plain
	}
	first, last := LikeBounds(s, typ.Collation(), typ.MaxCharacterLength())
	if first == "" {
		return plain
	}
	bounded := expression.NewAnd(expression.NewGreaterThanOrEqual(column, expression.NewLiteral(first, typ)), plain)
	if last != "" {
		return expression.NewAnd(expression.NewLessThanOrEqual(column, expression.NewLiteral(last, typ)), bounded)
	}
	return bounded
}

// LikeBounds returns bounds of the texts, of up to length characters, that match a pattern. Some
// texts between the bounds may not match. A bound is empty if none is known. Backslashes escape
// wildcards.
func LikeBounds(pattern string, c gms.CollationID, length int64) (first, last string) {
	first = literalPrefix(pattern)
	room := length - int64(utf8.RuneCountInString(first))
	if first != "" && room >= 0 && room <= lastMax {
		last = first + strings.Repeat(lastOf(c), int(room))
	}
	return first, last
}

// literalPrefix returns the text of a pattern before its first wildcard.
func literalPrefix(pattern string) string {
	var b strings.Builder
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(r)
		case r == '\\':
			escaped = true
		case r == '%' || r == '_':
			return b.String()
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lastMax bounds the length of an upper bound. Longer columns get only a lower one.
const lastMax = 1000

// lasts caches lastOf, which visits all characters.
var lasts sync.Map

// lastOf returns the last character of a collation. The last string of a given length consists of
// this character only.
func lastOf(c gms.CollationID) string {
	if known, ok := lasts.Load(c); ok {
		return known.(string)
	}
	weight := c.Sorter()
	last := rune(0)
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && weight(r) > weight(last) {
			last = r
		}
	}
	lasts.Store(c, string(last))
	return string(last)
}
