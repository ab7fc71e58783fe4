package store

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
)

// A shelf holds the transaction of a session that runs a statement beside it.
type shelf struct {
	open    *Transaction // nil if none was open
	ignores bool         // see gms.Session.GetIgnoreAutoCommit
}

// SetAside makes the next statement, which shows definitions, run in a transaction of its own beside the client's open
// transaction. Otherwise the client's transaction would conflict with changes of all definitions that were shown.
// TakeBack must follow. A transaction that has itself changed definitions must see them, and is not set aside.
func (s *Session) SetAside() {
	open, _ := s.baseSession.GetTransaction().(*Transaction)
	if open != nil && (open == s.Body || s.Store.Catalog.Changed(open.Tx)) {
		return
	}
	s.shelf = &shelf{open: open, ignores: s.GetIgnoreAutoCommit()}
	s.clear()
}

// TakeBack gives the session its own transaction back, once the statement beside it has ended.
func (s *Session) TakeBack() {
	if s.shelf == nil {
		return
	}
	own := *s.shelf
	s.Abort() // what the statement has left
	s.shelf = nil
	if own.open != nil {
		s.baseSession.SetTransaction(own.open)
	}
	s.SetIgnoreAutoCommit(own.ignores)
}

// shelvedRows returns by how many rows the transaction that was set aside has changed the row count of
// a table: a statement beside the transaction shows the count as the client knows it.
func shelvedRows(ctx *gms.Context, counter region.Ptr) int64 {
	s, ok := ctx.Session.(ours)
	if !ok || s.base().shelf == nil || s.base().shelf.open == nil {
		return 0
	}
	return s.base().shelf.open.rows[counter]
}
