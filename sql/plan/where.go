package plan

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/row"
)

// This file converts the expressions of a WHERE to conditions.

// condition returns the condition for an expression on rows of tables.
func (b *builder) condition(e gms.Expression, s scope) (Condition, error) {
	switch e := e.(type) {
	case *expression.And:
		all, err := b.conditions(s, e.Left(), e.Right())
		return And(all), err
	case *expression.Or:
		all, err := b.conditions(s, e.Left(), e.Right())
		return Or(all), err
	case *expression.Not:
		c, err := b.condition(e.Child, s)
		return Not{c}, err
	case *expression.IsNull:
		if f, ok := e.Child.(*expression.GetField); ok && s.place(f) >= 0 {
			return IsNull{Column: s.place(f)}, nil
		}
	}
	before := *b
	if c, ok := b.comparison(e, s); ok {
		return c, nil
	}
	// Drop what was registered for the operands, so that it is not evaluated for nothing.
	b.bound, b.computed, b.subqueries, b.shared = before.bound, before.computed, before.subqueries, before.shared
	x, err := b.expression(e, s)
	return Other{x}, err
}

// comparison returns the condition for a comparison of columns with parameters; false for other expressions.
func (b *builder) comparison(e gms.Expression, s scope) (Condition, bool) {
	switch e := e.(type) {
	case *expression.Between:
		return b.between(e, s)
	case *expression.InTuple:
		return b.in(e, s)
	case *gmsplan.InSubquery:
		return b.inSubquery(e, s)
	case *expression.Like:
		return b.like(e, s)
	case expression.Comparer:
		return b.compare(e, s)
	}
	return nil, false
}

func (b *builder) conditions(s scope, all ...gms.Expression) ([]Condition, error) {
	out := make([]Condition, len(all))
	var err error
	for i, e := range all {
		if out[i], err = b.condition(e, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// comparable returns the position of a column; false if the expression is not a column, or if an
// operator cannot compare the column with parameters.
func (b *builder) comparable(e gms.Expression, op Op, s scope) (int, bool) {
	c, ok := s.column(e)
	return c, ok && isComparable(s.codecs[c], op)
}

func (b *builder) between(e *expression.Between, s scope) (Condition, bool) {
	column, ok := b.comparable(e.Val, LessEqual, s)
	if !ok {
		return nil, false
	}
	lo, isLo := b.value(e.Lower, s.codecs[column])
	hi, isHi := b.value(e.Upper, s.codecs[column])
	return And{Compare{column, GreaterEqual, lo}, Compare{column, LessEqual, hi}}, isLo && isHi
}

// like returns the condition that a column matches a parameter.
func (b *builder) like(e *expression.Like, s scope) (Condition, bool) {
	column, ok := s.column(e.Left())
	if !ok || e.Escape != nil || !row.IsCharacter(s.codecs[column].Kind) || !isComparable(s.codecs[column], Equal) {
		return nil, false
	}
	pattern, ok := b.operand(e.Right())
	return Like{column, pattern}, ok && !pattern.Negative
}

func (b *builder) in(e *expression.InTuple, s scope) (Condition, bool) {
	if columns, ok := e.Left().(expression.Tuple); ok {
		return b.rowsIn(columns, e.Right(), s)
	}
	column, ok := b.comparable(e.Left(), Equal, s)
	list, isList := e.Right().(expression.Tuple)
	if !ok || !isList {
		return nil, false
	}
	in := In{Column: column}
	for _, x := range list {
		o, ok := b.value(x, s.codecs[column])
		if !ok {
			return nil, false
		}
		in.Values = append(in.Values, o)
	}
	return in, true
}

// rowsIn returns the condition (a, b) IN ((1, 2), (3, 4)), which is a = 1 AND b = 2 OR a = 3 AND b = 4.
func (b *builder) rowsIn(columns expression.Tuple, list gms.Expression, s scope) (Condition, bool) {
	rows, ok := list.(expression.Tuple)
	if !ok {
		return nil, false
	}
	var or Or
	for _, row := range rows {
		values, ok := row.(expression.Tuple)
		if !ok || len(values) != len(columns) {
			return nil, false
		}
		var and And
		for i, v := range values {
			column, ok := b.comparable(columns[i], Equal, s)
			if !ok {
				return nil, false
			}
			o, ok := b.value(v, s.codecs[column])
			if !ok {
				return nil, false
			}
			and = append(and, Compare{column, Equal, o})
		}
		or = append(or, and)
	}
	return or, true
}

func (b *builder) compare(e expression.Comparer, s scope) (Condition, bool) {
	op, ok := opOf(e)
	if !ok {
		return nil, false
	}
	if same, ok := b.same(e, op, s); ok {
		return same, true
	}
	if column, ok := b.comparable(e.Left(), op, s); ok {
		o, ok := b.value(e.Right(), s.codecs[column])
		return Compare{column, op, o}, ok
	}
	column, ok := b.comparable(e.Right(), op, s)
	if !ok {
		return nil, false
	}
	o, ok := b.value(e.Left(), s.codecs[column])
	return Compare{column, op.turned(), o}, ok
}

// same returns the condition that two columns are equal; false for other expressions, and if values of the columns' types
// are compared differently.
func (b *builder) same(e expression.Comparer, op Op, s scope) (Condition, bool) {
	left, isLeft := s.column(e.Left())
	right, isRight := s.column(e.Right())
	if !isLeft || !isRight || op != Equal || !areAlike(s.codecs[left], s.codecs[right]) {
		return nil, false
	}
	return Same{left, right}, true
}

func opOf(e gms.Expression) (Op, bool) {
	switch e.(type) {
	case *expression.Equals:
		return Equal, true
	case *expression.LessThan:
		return Less, true
	case *expression.LessThanOrEqual:
		return LessEqual, true
	case *expression.GreaterThan:
		return Greater, true
	case *expression.GreaterThanOrEqual:
		return GreaterEqual, true
	}
	return 0, false
}
