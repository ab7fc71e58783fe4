package sql

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// There are no table locks: a transaction reads one state of everything, and commits only if that
// still holds. LOCK TABLES, which dumps contain and use, succeeds with a warning that it does not
// lock. Statements that lock everything are refused, because their users copy files or read log
// positions meanwhile.

const noTableLocks = "LOCK TABLES keeps nobody from reading or changing the tables: put the statements that belong together between START TRANSACTION and COMMIT (dump with --single-transaction)"

// lockTables executes LOCK TABLES. As in MySQL, it commits, and so does UNLOCK TABLES.
func (b *builder) lockTables(ctx *gms.Context, s *Session) (gms.RowIter, error) {
	if err := s.commitOpen(ctx); err != nil {
		return nil, err
	}
	s.locked = true
	ctx.Warn(mysql.ERNotSupportedYet, noTableLocks)
	return gms.RowsToRowIter(), nil
}

// unlockTables executes UNLOCK TABLES.
func (b *builder) unlockTables(ctx *gms.Context, s *Session) (gms.RowIter, error) {
	if s.locked {
		if err := s.commitOpen(ctx); err != nil {
			return nil, err
		}
	}
	s.locked = false
	return gms.RowsToRowIter(), nil
}

// commitOpen commits the transaction that the client has open, if any.
func (s *Session) commitOpen(ctx *gms.Context) error {
	tr := store.Current(ctx)
	if tr == nil || !s.Explicit() {
		return nil
	}
	if err := s.CommitTransaction(ctx, tr); err != nil {
		return err
	}
	s.SetIgnoreAutoCommit(false)
	ctx.SetTransaction(s.NewTransaction(gms.ReadWrite))
	return nil
}

// refused returns an error for a statement that go-mysql-server would accept without doing what it
// says.
func refused(query string, stmt sqlparser.Statement) error {
	switch n := stmt.(type) {
	case *sqlparser.Flush:
		if err := refusedFlush(n); err != nil {
			return err
		}
		if n.Option != nil && n.Option.ReadLock {
			return myerr.NotSupported("'FLUSH TABLES WITH READ LOCK': nothing locks all tables; read one state of all of them in a transaction (dump with --single-transaction), or set read_only")
		}
	case *sqlparser.Set:
		return refusedSet(n)
	}
	return refusedPartitions(query, stmt)
}

// refusedFlush refuses to flush what does not exist here. Flushing tables, privileges, binary logs or
// engine logs has nothing to do, and succeeds.
func refusedFlush(n *sqlparser.Flush) error {
	what := n.Type
	if n.Option != nil && what == "" {
		switch what = strings.ToLower(n.Option.Name); what {
		case "privileges", "binary logs", "engine logs", "table", "tables":
			return nil
		}
	}
	return myerr.NotSupported("'FLUSH %s'", strings.ToUpper(what))
}

// refusedSet refuses two SETs that go-mysql-server would apply to the session: SET PASSWORD, whose
// effect must outlast the session, and SET TRANSACTION READ ONLY, which is for the next
// transaction only.
func refusedSet(n *sqlparser.Set) error {
	for _, x := range n.Exprs {
		if x.Scope == sqlparser.SetScope_None && x.Name.Qualifier.IsEmpty() && x.Name.Name.EqualString("password") {
			return myerr.NotSupported("'SET PASSWORD' without FOR: name the account, or use ALTER USER")
		}
		v, ok := x.Expr.(*sqlparser.SQLVal)
		if ok && x.Scope == sqlparser.SetScope_None && x.Name.Name.EqualString("transaction") && string(v.Val) == sqlparser.TxReadOnly {
			return myerr.NotSupported("'SET TRANSACTION READ ONLY' for the next transaction: use START TRANSACTION READ ONLY, or SET SESSION TRANSACTION READ ONLY for all")
		}
	}
	return nil
}
