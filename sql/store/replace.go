package store

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// A replacing is what a REPLACE does that go-mysql-server does not tell: it
// counts one deleted row for each new one, where every unique key may have had
// another, and it forgets the number that AUTO_INCREMENT has given.
type replacing struct {
	table string
	// until counts down to the first row whose number is generated; below 0
	// there is none, or it has come.
	until int
	// deleted is how many rows the present one has replaced so far.
	deleted int
	extra   uint64 // deleted rows that are not counted
	// id is the first generated number, that of the last row if none is, and 0
	// if there is no such column; drawn says that it is generated.
	id    uint64
	drawn bool
}

// Replaces prepares for a statement's REPLACE, the outermost one.
func (s *Session) Replaces(ctx *gms.Context, n *plan.InsertInto) {
	if columns := n.Destination.Schema(ctx); n.IsReplace && s.replacing == nil && len(columns) > 0 {
		s.replacing = &replacing{table: columns[0].Source, until: n.FirstGeneratedAutoIncRowIdx}
	}
}

// TakeReplaced returns what the last REPLACE has left out of its result: rows
// that it has deleted besides, and the number to tell the client, 0 if there is
// none. It is to be called after every statement.
func (s *Session) TakeReplaced() (deleted, id uint64) {
	r := s.replacing
	s.replacing = nil
	if r == nil {
		return 0, 0
	}
	return r.extra, r.id
}

// replacingOf returns the REPLACE that changes the editor's table, nil if the
// statement is none.
func (e *Editor) replacingOf() *replacing {
	if e.s == nil || e.s.replacing == nil || !strings.EqualFold(e.s.replacing.table, e.Info.Name) {
		return nil
	}
	return e.s.replacing
}

// inserted notes that a row of a REPLACE is in, after what it replaces is out.
func (r *replacing) inserted(ctx *gms.Context, e *Editor, row gms.Row) {
	if r.deleted > 1 {
		r.extra += uint64(r.deleted - 1)
	}
	r.deleted = 0
	if n, ok := e.autoValue(ctx, row); ok && !r.drawn {
		r.id, r.drawn = n, r.until == 0
		if r.drawn {
			ctx.GetLastQueryInfo().LastInsertId.Store(int64(n))
		}
	}
	r.until--
}
