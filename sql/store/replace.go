package store

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// A replacing corrects go-mysql-server's result of a REPLACE. go-mysql-server
// counts one deleted row for each new one, although each unique key may have
// replaced another row; and it drops the number that AUTO_INCREMENT has generated.
type replacing struct {
	table string
	// until is the number of rows still to come before the first row with a generated number. It is
	// below 0 once that row has passed, or if there is none.
	until int
	// deleted is the number of rows that the present row has replaced so far.
	deleted int
	// was is the first of them.
	was   gms.Row
	extra int64 // deleted rows in addition to one for each new row
	// id is the first generated number; if no number has been generated, the last row's number; 0
	// without an AUTO_INCREMENT column. drawn is set if id has been generated.
	id    uint64
	drawn bool
}

// Replaces prepares the session for a statement's outermost REPLACE.
func (s *Session) Replaces(ctx *gms.Context, n *plan.InsertInto) {
	if columns := n.Destination.Schema(ctx); n.IsReplace && s.change.replacing == nil && len(columns) > 0 {
		s.change.replacing = &replacing{table: columns[0].Source, until: n.FirstGeneratedAutoIncRowIdx}
	}
}

// Replacing notes the AUTO_INCREMENT number that a compiled REPLACE tells its client.
func (s *Session) Replacing(id uint64) { s.change.replacing = &replacing{id: id} }

// Replaced returns two numbers that go-mysql-server's result of a REPLACE lacks: of further deleted rows, which may be
// below 0, in two's complement, and the generated number, 0 if none. Both are 0 if the session's last statement is not
// a REPLACE.
func (s *Session) Replaced() (deleted, id uint64) {
	if r := s.change.replacing; r != nil {
		return uint64(r.extra), r.id
	}
	return 0, 0
}

// replacingOf returns the REPLACE that changes the editor's table, nil if there is
// none.
func (e *Editor) replacingOf() *replacing {
	if e.s == nil || e.s.change.replacing == nil || !strings.EqualFold(e.s.change.replacing.table, e.Info.Name) {
		return nil
	}
	return e.s.change.replacing
}

// isSame reports whether a row is the same as the one that it replaces, which MySQL does not count as deleted: where there are no
// further unique keys, references to the table and triggers, it updates the row in place.
func (e *Editor) isSame(ctx *gms.Context, was, row gms.Row) bool {
	if len(e.Info.ReferencedBy) > 0 || e.Info.uniques() != 1 {
		return false
	}
	if same, err := was.Equals(ctx, row, e.Info.Exact); err != nil || !same {
		return false
	}
	triggers, err := e.Store.Catalog.Triggers(e.tr.Tx, e.Info.DB, e.Info.Name)
	return err == nil && len(triggers) == 0
}

// noteInsert notes that a row of a REPLACE has been inserted, after the rows that it replaces have
// been deleted.
func (r *replacing) noteInsert(ctx *gms.Context, e *Editor, row gms.Row) {
	switch {
	case r.deleted > 1:
		r.extra += int64(r.deleted - 1) // go-mysql-server counts one itself
	case r.deleted == 1 && e.isSame(ctx, r.was, row):
		r.extra--
	}
	r.deleted, r.was = 0, nil
	if n, ok := e.autoValue(ctx, row); ok && !r.drawn {
		r.id, r.drawn = n, r.until == 0 // at 0, the number of this row was generated
		if r.drawn {
			ctx.GetLastQueryInfo().LastInsertId.Store(int64(n))
		}
	}
	r.until--
}
