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
	// locked is set after LOCK TABLES: UNLOCK TABLES then commits.
	locked bool
	// result are the result's columns, set when the statement is executed.
	result gms.Schema
	// measuring is the running EXPLAIN ANALYZE, nil if there is none.
	measuring *measuring
	// bodyStatements is how many statements of stored procedures have been run since
	// TakeBodyStatements.
	bodyStatements uint64
	// whole is the node whose rows must be read to the end when it is built; plain is the
	// node that go-mysql-server is building without our builder.
	whole, plain gms.Node
	// literals is set if the plan has exactLiterals.
	literals bool
	// load holds what the INSERT being planned carries (upsert_carry.go).
	load *load
	// view is the CREATE VIEW text of the view that is being read: see readView.
	view string
	// viewDepth bounds how deep the views of the statement numbered viewsOf can be nested.
	viewDepth int
	viewsOf   uint64
	// inserted is the source of an INSERT until it is built, and columns are the columns
	// that its rows go into.
	inserted gms.Node
	columns  gms.Schema
	// toldID is set once LAST_INSERT_ID(n) has run in the current statement.
	toldID bool
}

// FromContext returns the session that a context belongs to.
func FromContext(ctx *gms.Context) *Session { return ctx.Session.(*Session) }

// Begin is called where a statement begins.
func (s *Session) Begin() {
	s.result = nil
	s.SettleAttempt()
	s.e.opt.Accounts.KeepFresh(s.e.Store)
}

// ResultColumns returns the columns of the current statement's result; nil before it is
// executed.
func (s *Session) ResultColumns() gms.Schema { return s.result }

// TakeBodyStatements returns how many statements of stored procedures have been run since
// the last time.
func (s *Session) TakeBodyStatements() uint64 {
	n := s.bodyStatements
	s.bodyStatements = 0
	return n
}
