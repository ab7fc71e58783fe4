package store

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/row"
)

// An inserting notes the AUTO_INCREMENT numbers of an INSERT, because go-mysql-server may report another row's number,
// or none. While it plans the INSERT, it determines the first row whose number will be generated, and later it counts
// inserted rows up to that one. This goes wrong if a row is ignored or updates another, and if a value turns out to be
// NULL only when it is evaluated.
type inserting struct {
	table string
	// drawn are the numbers that have been generated for rows that are not stored yet.
	drawn map[uint64]bool
	// first is the first generated number of a stored row, 0 if there is none.
	first uint64
	// last is the number of the row that was processed last, changed is set once a row has been
	// inserted or updated.
	last    int64
	changed bool
	// forgets is set for INSERT ... SELECT ... ON DUPLICATE KEY UPDATE: its clients are told only of generated numbers.
	forgets bool
}

// Inserts prepares the session for a statement's outermost INSERT.
func (s *Session) Inserts(ctx *gms.Context, n *plan.InsertInto) {
	columns := n.Destination.Schema(ctx)
	if n.IsReplace || s.change.inserting != nil || len(columns) == 0 {
		return
	}
	_, ofValues := valuesOf(n.Source)
	s.change.inserting = &inserting{table: columns[0].Source, drawn: make(map[uint64]bool), forgets: n.OnDupExprs.HasUpdates() && !ofValues}
	n.FirstGeneratedAutoIncRowIdx = -1 // go-mysql-server is to leave the session's last number alone
}

// valuesOf returns the VALUES of an INSERT's source; false for a SELECT.
func valuesOf(source gms.Node) (*plan.Values, bool) {
	for {
		switch n := source.(type) {
		case *plan.Values:
			return n, true
		case *plan.Project, *plan.TriggerExecutor:
			source = n.Children()[0]
		default:
			return nil, false
		}
	}
}

// Inserted returns two numbers of the session's last statement: generated is the first number that it has generated, 0
// if none; told is the number that the client is told. It returns false if the statement is not an INSERT that was
// planned.
func (s *Session) Inserted() (generated uint64, told int64, ok bool) {
	i := s.change.inserting
	switch {
	case i == nil:
		return 0, 0, false
	case i.first != 0:
		return i.first, int64(i.first), true
	case i.changed && !i.forgets:
		return 0, i.last, true
	}
	return 0, 0, true
}

// Generated reports whether the session's running INSERT has stored a row with a generated number.
func (s *Session) Generated() bool { return s.change.inserting != nil && s.change.inserting.first != 0 }

// noteDrawn notes a number that has been generated for a row of a table.
func (s *Session) noteDrawn(table string, n uint64) {
	if i := s.change.inserting; i != nil && strings.EqualFold(i.table, table) {
		i.drawn[n] = true
	}
}

// noteStored notes a row that an INSERT has stored or, if isNew is false, has updated in place of storing one.
func (e *Editor) noteStored(ctx *gms.Context, values gms.Row, isNew bool) {
	if e.s == nil || e.s.change.inserting == nil || !strings.EqualFold(e.s.change.inserting.table, e.Info.Name) {
		return
	}
	i := e.s.change.inserting
	i.changed = true
	if e.Info.AutoColumn < 0 {
		return
	}
	i.last = autoNumber(values[e.Info.AutoColumn])
	n := uint64(i.last)
	if isNew && i.drawn[n] {
		delete(i.drawn, n)
		if i.first == 0 {
			i.first = n
			ctx.GetLastQueryInfo().LastInsertId.Store(i.last)
		}
	}
}

// noteUpdated notes a row that ON DUPLICATE KEY UPDATE has updated.
func (e *Editor) noteUpdated(ctx *gms.Context, old, values gms.Row) {
	if e.s == nil || e.s.change.inserting == nil {
		return
	}
	if same, err := old.Equals(ctx, values, e.Schema(ctx)); err == nil && !same {
		e.noteStored(ctx, values, false)
	}
}

// autoNumber returns a number of an AUTO_INCREMENT column.
func autoNumber(v any) int64 {
	if n, ok := row.Signed(v); ok {
		return n
	}
	n, _ := row.Unsigned(v)
	return int64(n)
}
