package plan

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// This file collects the literals and the tables of subqueries. It also makes the names of columns
// that contain such literals.

// A columnName is the name of a column. Question marks in text stand for the literals from first on.
type columnName struct {
	text  string
	first int
}

// columns collects the literals and the tables of the subqueries in a SELECT's columns. isOutermost
// is set if these are the columns of the result. In a column without an alias, all literals stay fixed unless the column
// is one of the result and its name, which has the literals, can be made for other values (nameOf).
func (l *Literals) columns(list sqlparser.SelectExprs, isOutermost bool) {
	for _, e := range list {
		keeps := l.keeps
		a, ok := e.(*sqlparser.AliasedExpr)
		if ok && !hasAlias(a) {
			name, ok := nameOf(a)
			l.keeps = keeps || !ok || !isOutermost
			if !l.keeps && name.text != "" {
				l.names = append(l.names, name)
			}
		}
		l.subqueries(e)
		l.keeps = keeps
	}
}

// nameOf returns the name of a column without an alias: the text of its expression. It returns
// false if the text does not have the same literals as the expression.
func nameOf(a *sqlparser.AliasedExpr) (columnName, bool) {
	numbers := numbersIn(a.Expr)
	if len(numbers) == 0 {
		return columnName{}, true
	}
	marks := 0
	replaced(a.InputExpression, func() string {
		marks++
		return ""
	})
	return columnName{a.InputExpression, slices.Min(numbers)}, marks == len(numbers)
}

// HasNames reports whether names of columns have parameters in them.
func (l *Literals) HasNames() bool { return len(l.names) > 0 }

// hasParameter reports whether a column's name contains a parameter.
func (l *Literals) hasParameter(n columnName) (has bool) {
	at := n.first - 1
	replaced(n.text, func() string {
		at++
		has = has || l.isParameter[at]
		return ""
	})
	return has
}

// Named returns the columns of a result with the names for values. prepared are the values for
// which the columns were named. It returns false if a column does not have the expected name for
// these.
func (l *Literals) Named(columns gms.Schema, prepared, values []Value) (gms.Schema, bool) {
	columns = slices.Clone(columns)
	at := 0
	for _, n := range l.names {
		was := l.spelled(n, prepared, true)
		for at < len(columns) && columns[at].Name != was {
			at++
		}
		if at == len(columns) {
			return nil, false
		}
		c := *columns[at]
		c.Name = l.spelled(n, values, false)
		columns[at] = &c
		at++
	}
	return columns, true
}

// spelled returns a column's name with the values of a statement. If marked is set, question marks
// stand for its parameters.
func (l *Literals) spelled(n columnName, values []Value, marked bool) string {
	at := n.first - 1
	return replaced(n.text, func() string {
		if at++; (marked && l.isParameter[at]) || values[at].IsBound {
			return "?"
		}
		return spelled(values[at])
	})
}

// subqueries collects the literals and the tables of the subqueries in an expression or a list.
func (l *Literals) subqueries(list sqlparser.SQLNode) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		q, ok := n.(*sqlparser.Subquery)
		if ok {
			l.subquery(q)
		}
		return !ok, nil
	}, list)
}

// subquery collects the literals and the tables of a subquery. Build refuses subqueries that it does not know.
func (l *Literals) subquery(q *sqlparser.Subquery) {
	s, ok := q.Select.(*sqlparser.Select)
	if !ok || s.With != nil || s.Into != nil || (s.Lock != nil && s.Lock.Type != "") {
		return
	}
	l.hasSubquery = true
	l.subqueries(s.SelectExprs)
	if !l.fromClause(s.From) {
		return
	}
	if s.Where != nil {
		l.condition(s.Where.Expr)
	}
	l.limit(s.Limit)
}
