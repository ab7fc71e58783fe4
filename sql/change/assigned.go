package change

import (
	"reflect"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/store"
)

// This file checks numbers, times and strings that statements assign to a column. In an UPDATE,
// and for times in any statement, go-mysql-server silently brings values into the column's range
// and takes an empty string for 0; MySQL does so only with IGNORE. The errors of go-mysql-server name neither column
// nor row. MySQL also drops the spaces at the end of a CHAR.

var (
	_ gms.Expression = (*assigned)(nil)
	_ gms.RowIter    = (*assignIter)(nil)
)

// An assigned is the value that an UPDATE gives to a column.
type assigned struct {
	gms.Expression
	column *expression.GetField
	assign assign
	// isLenient is set if NULL becomes the default of the column's type where the column cannot be NULL.
	isLenient bool
	rows      int // rows evaluated so far
}

// An assign converts a value for a column of a type; row is the row's number in the statement.
type assign func(ctx *gms.Context, v any, t gms.Type, column string, row int) (any, error)

// Assigned returns the assignment of an UPDATE, or of ON DUPLICATE KEY UPDATE, with its value
// checked when it is evaluated, or with the column's default for DEFAULT. It returns nil if the assignment stays as it is:
// nothing has to be checked for values of the column's type, or set is checked already.
func Assigned(ctx *gms.Context, n gms.Node, set *expression.SetField) gms.Expression {
	column, ok := set.LeftChild.(*expression.GetField)
	if !ok {
		return nil
	}
	if value := defaultOf(ctx, n, column, set.RightChild); value != nil {
		return expression.NewSetField(column, value)
	}
	if _, done := set.RightChild.(*assigned); done {
		return nil
	}
	convert, concerns, isLenient := assign(store.Assign), store.IsAssigned, false
	switch {
	case ignores(n):
		convert, concerns = cut, isCut
	case !store.IsStrict(ctx):
		convert, concerns, isLenient = closest, isClosest, true
	}
	if !concerns(column.Type(ctx)) {
		return nil
	}
	return expression.NewSetField(column, &assigned{Expression: set.RightChild, column: column, assign: convert, isLenient: isLenient})
}

// defaultOf returns the default of a column, if ON DUPLICATE KEY UPDATE sets the column to DEFAULT; otherwise nil. For
// an UPDATE, go-mysql-server itself puts the default into the plan.
func defaultOf(ctx *gms.Context, n gms.Node, column *expression.GetField, value gms.Expression) gms.Expression {
	insert, ok := n.(*plan.InsertInto)
	if !ok {
		return nil
	}
	if wrapped, ok := value.(*expression.Wrapper); ok {
		value = wrapped.Unwrap()
	}
	if _, ok := value.(*expression.DefaultColumn); !ok {
		return nil
	}
	for _, c := range insert.Destination.Schema(ctx) {
		switch {
		case !strings.EqualFold(c.Name, column.Name()):
		case c.Default != nil:
			return c.Default
		case c.Nullable:
			return expression.NewLiteral(nil, types.Null)
		default:
			return &noDefault{expression.DefaultColumn{}, c.Name}
		}
	}
	return nil
}

// A noDefault is the default of a column that has none.
type noDefault struct {
	expression.DefaultColumn
	name string
}

// Eval implements gms.Expression.
func (d *noDefault) Eval(*gms.Context, gms.Row) (any, error) {
	return nil, gms.ErrInsertIntoNonNullableDefaultNullColumn.New(d.name)
}

// WithChildren implements gms.Expression.
func (d *noDefault) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(d, len(children), 0)
	}
	return d, nil
}

// ignores reports whether a statement is an UPDATE IGNORE, or INSERT IGNORE.
func ignores(n gms.Node) bool {
	switch n := n.(type) {
	case *plan.UpdateSource:
		return n.Ignore
	case *plan.InsertInto:
		return n.Ignore
	}
	return false
}

// Eval implements gms.Expression.
func (a *assigned) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	a.rows++
	v, err := a.Expression.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	if v == nil && a.isLenient {
		return notNull(ctx, a.column), nil
	}
	return a.assign(ctx, v, a.column.Type(ctx), a.column.Name(), a.rows)
}

// WithChildren implements gms.Expression.
func (a *assigned) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := a.Expression.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &assigned{Expression: e, column: a.column, assign: a.assign, isLenient: a.isLenient}, nil
}

// CheckInserted asks for the rows of an INSERT to be checked when they are built.
func (s *Statement) CheckInserted(ctx *gms.Context, n *plan.InsertInto) {
	if _, load := n.Source.(*plan.LoadData); load || !reflect.TypeOf(n.Source).Comparable() {
		return
	}
	s.inserted, s.columns, s.convert, s.missing = n.Source, n.Destination.Schema(ctx), store.Assign, nil
	switch {
	case n.Ignore:
		s.convert = cut
	case !store.IsStrict(ctx):
		s.convert, s.missing = closest, missingOf(n)
	}
}

// TakeInserted returns the check of a node's rows against the columns that they are inserted into,
// and forgets it. It returns nil the next time, and for other nodes.
func (s *Statement) TakeInserted(n gms.Node) func(gms.RowIter) gms.RowIter {
	if s.inserted == nil || s.inserted != n {
		return nil
	}
	i := assignIter{columns: s.columns, assign: s.convert, missing: s.missing}
	s.inserted, s.columns, s.missing = nil, nil, nil
	return func(rows gms.RowIter) gms.RowIter {
		i.RowIter = rows
		return &i
	}
}

// An assignIter checks the rows of an INSERT.
type assignIter struct {
	gms.RowIter
	columns gms.Schema
	assign  assign
	missing *missing // nil if a missing value is an error
	rows    int      // rows evaluated so far
}

// Next implements gms.RowIter.
func (i *assignIter) Next(ctx *gms.Context) (gms.Row, error) {
	row, err := i.RowIter.Next(ctx)
	if err != nil || len(row) < len(i.columns) {
		return row, err
	}
	i.rows++
	first := len(row) - len(i.columns) // the columns of an outer scope come first
	out := row.Copy()
	for at, c := range i.columns {
		if row[first+at] == nil && i.missing != nil {
			out[first+at] = i.missing.value(ctx, at, c)
			continue
		}
		v, err := i.assign(ctx, row[first+at], c.Type, c.Name, i.rows)
		if err != nil {
			return nil, err
		}
		out[first+at] = v
	}
	return out, nil
}
