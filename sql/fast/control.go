package fast

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/store"
)

// controlOf returns the kind of a statement that begins or ends a transaction, and
// false for others and for a START TRANSACTION with characteristics, such as READ ONLY.
func controlOf(stmt sqlparser.Statement) (shapeKind, bool) {
	switch n := stmt.(type) {
	case *sqlparser.Begin:
		return shapeBegin, n.TransactionCharacteristic == ""
	case *sqlparser.Commit:
		return shapeCommit, true
	case *sqlparser.Rollback:
		return shapeRollback, true
	}
	return 0, false
}

// control begins or ends the session's transaction, with the same effect as go-mysql-server, which
// begins a transaction first if there is none.
func (c *Compiled) control(ctx *gms.Context, s *Session) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.ClearWarnings()
	if open := store.Current(ctx); open != nil {
		if err := s.End(ctx, open, c.shape.kind == shapeRollback); err != nil {
			return nil, err
		}
	}
	if c.shape.kind == shapeBegin {
		ctx.SetTransaction(s.BeginNext(gms.ReadWrite))
		s.SetIgnoreAutoCommit(true)
	} else {
		s.SetIgnoreAutoCommit(false)
		ctx.SetTransaction(nil)
	}
	last := s.GetLastQueryInfo()
	last.RowCount.Store(-1)
	last.FoundRows.Store(0)
	return &Result{}, nil
}
