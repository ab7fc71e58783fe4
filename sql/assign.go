package sql

import (
	"reflect"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// This file checks numbers, times and strings that statements assign to a column. For the values
// of an UPDATE, and for all times, go-mysql-server silently brings values into the column's
// range and takes an empty string for 0, and its errors name neither column nor row. MySQL does
// so only with IGNORE. MySQL also keeps the spaces at the end of a CHAR.

var (
	_ gms.Expression = (*assigned)(nil)
	_ gms.RowIter    = (*assignIter)(nil)
)

// An assigned is the value that an UPDATE gives to a column.
type assigned struct {
	gms.Expression
	column *expression.GetField
	rows   int // rows evaluated so far
}

// newAssigned returns nil if the column, or the statement, takes any value.
func newAssigned(ctx *gms.Context, n gms.Node, set *expression.SetField) gms.Expression {
	column, ok := set.LeftChild.(*expression.GetField)
	if !ok || ignores(n) {
		return nil
	}
	if _, done := set.RightChild.(*assigned); done {
		return nil
	}
	if !store.IsAssigned(column.Type(ctx)) {
		return nil
	}
	return expression.NewSetField(column, &assigned{Expression: set.RightChild, column: column})
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
	return store.Assign(ctx, v, a.column.Type(ctx), a.column.Name(), a.rows)
}

// WithChildren implements gms.Expression.
func (a *assigned) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := a.Expression.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &assigned{Expression: e, column: a.column}, nil
}

// checkInserted asks for the rows of an INSERT to be checked when they are
// built.
func (s *Session) checkInserted(ctx *gms.Context, n *plan.InsertInto) {
	if _, load := n.Source.(*plan.LoadData); load || ignores(n) || !reflect.TypeOf(n.Source).Comparable() {
		return
	}
	s.inserted, s.columns = n.Source, n.Destination.Schema(ctx)
}

// takeInserted returns the columns that the rows of a node are inserted into,
// once; nil if they are not.
func (s *Session) takeInserted(n gms.Node) gms.Schema {
	if s.inserted == nil || s.inserted != n {
		return nil
	}
	columns := s.columns
	s.inserted, s.columns = nil, nil
	return columns
}

// An assignIter checks the rows of an INSERT.
type assignIter struct {
	gms.RowIter
	columns gms.Schema
	rows    int // rows evaluated so far
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
		v, err := store.Assign(ctx, row[first+at], c.Type, c.Name, i.rows)
		if err != nil {
			return nil, err
		}
		out[first+at] = v
	}
	return out, nil
}

// useComparisons replaces the expressions of a node that compare, or assign, otherwise than
// MySQL. It runs after the analyzer because the analyzer's rules recognize the original
// expressions by their types.
func useComparisons(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
	switch n.(type) {
	case *plan.Filter, *plan.Having, *plan.Project, *plan.GroupBy, *plan.JoinNode, *plan.UpdateSource, *plan.Values, *plan.InsertInto, *plan.Update, *plan.Sort, *plan.TopN:
		return transform.OneNodeExprsWithNode(ctx, n, replacement)
	}
	return n, transform.SameTree, nil
}

// replacement returns the expression that takes the place of an expression of a node.
func replacement(ctx *gms.Context, n gms.Node, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	set, ok := e.(*expression.SetField)
	if !ok {
		return compat.Compared(ctx, n, e)
	}
	if ours := newAssigned(ctx, n, set); ours != nil {
		return ours, transform.NewTree, nil
	}
	return e, transform.SameTree, nil
}
