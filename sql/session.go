package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/farmsql/farmsql/sql/fast"
)

var (
	_ gms.Session            = (*Session)(nil)
	_ gms.TransactionSession = (*Session)(nil)
)

// A Session is one client's. It belongs to one goroutine at a time.
type Session struct {
	fast.Session
	e *Engine
	// locked says that UNLOCK TABLES commits, after LOCK TABLES.
	locked bool
	// result are the columns that the statement answers with, once it is being executed.
	result gms.Schema
	// measuring is the EXPLAIN ANALYZE at work, nil if there is none.
	measuring *measuring
	// bodyStatements is how many statements of stored procedures have been run since
	// TakeBodyStatements.
	bodyStatements uint64
	// calls is how many stored procedures are at work, each called by the one before.
	calls int
	// returned are the values of the OUT parameters of the last CALL, until they are taken.
	returned map[int]any
	// whole is the node whose rows are to be read to the end when it is built,
	// and plain the node that is being built in the ordinary way.
	whole, plain gms.Node
	// literals says that a plan has exactLiterals.
	literals bool
	// load is what the INSERT that is being planned carries.
	load *load
	// view is the CREATE VIEW of a view that is being read: see readView.
	view string
	// viewDepth is how deep the views of the statement with the number viewsOf may be.
	viewDepth int
	viewsOf   uint64
	// inserted is what an INSERT inserts, until it is built, and columns are
	// where that goes.
	inserted gms.Node
	columns  gms.Schema
	// toldID: LAST_INSERT_ID(n) has run in the statement at work.
	toldID bool
}

// FromContext returns the session that a context belongs to.
func FromContext(ctx *gms.Context) *Session { return ctx.Session.(*Session) }

// Begin is called where a statement begins.
func (s *Session) Begin() {
	s.result = nil
	s.SettleAttempt()
	s.e.opt.Accounts.keepFresh(s.e)
}

// ResultColumns returns the columns that the statement at work answers with; nil before it
// is executed.
func (s *Session) ResultColumns() gms.Schema { return s.result }

// TakeBodyStatements returns how many statements of stored procedures have been run since
// the last time.
func (s *Session) TakeBodyStatements() uint64 {
	n := s.bodyStatements
	s.bodyStatements = 0
	return n
}
