package change

import (
	"io"
	"reflect"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/trigger"
)

// This file keeps statements from reading their own changes. A statement that reads a single table
// once first collects the addresses of its rows (sql/store). A statement that reads more, for
// instance by a join, could read rows again after it has changed them; so its source is read to
// the end before the first change.

// ReadSource marks the source of a statement to be read to the end when it is built, if it could
// read the statement's own changes. n is the UPDATE's source, the DELETE or the INSERT.
func (s *Statement) ReadSource(ctx *gms.Context, n gms.Node) {
	switch n := n.(type) {
	case *plan.UpdateSource:
		s.readWhole(ctx, n)
	case *plan.DeleteFrom:
		s.readWhole(ctx, source(n.Child))
	case *plan.InsertInto:
		s.readOwn(ctx, n)
	}
}

// IsWhole reports whether a node's rows are to be read to the end.
func (s *Statement) IsWhole(n gms.Node) bool { return s.whole != nil && s.whole == n }

// Replace notes that another node is built in place of n.
func (s *Statement) Replace(n, by gms.Node) {
	if s.IsWhole(n) {
		s.whole = by
	}
}

// TakeWhole is like IsWhole, but true only once.
func (s *Statement) TakeWhole(n gms.Node) bool {
	isWhole := s.IsWhole(n)
	if isWhole {
		s.whole = nil
	}
	return isWhole
}

// Whole returns rows that are read to the end before the first is returned.
func Whole(rows gms.RowIter) gms.RowIter { return &wholeIter{source: rows} }

// readWhole marks a node to be read to the end when it is built, if it reads several tables,
// or one table several times, and runs no triggers.
func (s *Statement) readWhole(ctx *gms.Context, n gms.Node) {
	if reflect.TypeOf(n).Comparable() && readsMore(ctx, n) { // IsWhole compares the node
		s.whole = n
	}
}

// readOwn marks the source of an INSERT to be read to the end if the INSERT may change rows
// of a table that it reads.
func (s *Statement) readOwn(ctx *gms.Context, n *plan.InsertInto) {
	rows := source(n.Source)
	s.readWhole(ctx, rows)
	changesRows := n.IsReplace || n.OnDupExprs.HasUpdates()
	if target, err := plan.GetInsertable(n.Destination); err == nil && changesRows && reflect.TypeOf(rows).Comparable() {
		transform.InspectWithOpaque(ctx, rows, func(_ *gms.Context, n gms.Node) bool {
			if t, ok := n.(gms.TableNode); ok && t.UnderlyingTable().Name() == target.Name() {
				s.whole = rows
			}
			return true
		})
	}
}

// source returns the node that produces a statement's rows before its triggers see them:
// triggers must run as the rows change, not ahead.
func source(n gms.Node) gms.Node {
	n = trigger.Source(n)
	if p, ok := n.(*plan.Project); ok {
		if carries(p) {
			return p.Child
		}
		if _, ok := p.Child.(*plan.TriggerExecutor); ok || carries(p.Child) {
			return source(p.Child)
		}
	}
	return n
}

// readsMore reports whether a node reads several tables, or one table several times, and runs no
// triggers.
func readsMore(ctx *gms.Context, n gms.Node) bool {
	tables, triggers := 0, false
	transform.Inspect(n, func(n gms.Node) bool {
		switch n := n.(type) {
		case *plan.TriggerExecutor:
			triggers = true
		case *plan.ResolvedTable, *plan.IndexedTableAccess:
			tables++
			return false
		case *plan.SubqueryAlias:
			tables++
		case gms.Expressioner:
			for _, e := range n.Expressions() {
				gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
					if _, ok := e.(*plan.Subquery); ok {
						tables++
					}
					return true
				})
			}
		}
		return true
	})
	return tables > 1 && !triggers
}

// A wholeIter reads its source to the end before it returns the first row.
type wholeIter struct {
	source gms.RowIter
	rows   []gms.Row
	read   bool
}

// Next implements gms.RowIter.
func (i *wholeIter) Next(ctx *gms.Context) (gms.Row, error) {
	for !i.read {
		row, err := i.source.Next(ctx)
		if err == io.EOF {
			i.read = true
			break
		}
		if err != nil {
			return nil, err
		}
		i.rows = append(i.rows, row)
	}
	if len(i.rows) == 0 {
		return nil, io.EOF
	}
	row := i.rows[0]
	i.rows = i.rows[1:]
	return row, nil
}

// Close implements gms.RowIter.
func (i *wholeIter) Close(ctx *gms.Context) error {
	i.rows = nil
	return i.source.Close(ctx)
}
