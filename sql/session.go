package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/change"
	"github.com/farmsql/farmsql/sql/explain"
	"github.com/farmsql/farmsql/sql/fast"
)

var (
	_ gms.Session            = (*Session)(nil)
	_ gms.TransactionSession = (*Session)(nil)
	_ change.Session         = (*Session)(nil)
)

// A Session is the session of one client. It belongs to one goroutine at a time.
type Session struct {
	fast.Session
	e *Engine
	// locked is set after LOCK TABLES: UNLOCK TABLES then commits.
	locked bool
	// running holds the notes of the running statement.
	running statement
	// bodyStatements counts the statements of stored procedures that have run since the last
	// TakeBodyStatements.
	bodyStatements uint64
}

// A statement holds the notes that parts of one statement leave for later parts: go-mysql-server
// plans and executes the parts one by one, and passes nothing of ours from one to another. The
// session has a new one for each statement, also for each statement of a stored procedure, and an
// empty one once the client has its answer. go-mysql-server plans and executes the statements of
// triggers with the statement that fires them, so that they share its notes.
type statement struct {
	// result are the result's columns, set when the statement is executed.
	result gms.Schema
	// measuring is the running EXPLAIN ANALYZE, nil if there is none.
	measuring *explain.Measuring
	// plain is the node that go-mysql-server is building without our builder.
	plain gms.Node
	// literals is set if the plan has an exactLiteral.
	literals bool
	// view is the CREATE VIEW text of the view that is being read, and viewDatabase is the
	// view's database until the plan is built: see readView. renameAuthorizer sets it, too. viewDepth
	// bounds how deep views can be nested.
	view, viewDatabase string
	viewDepth          int
	changing           change.Statement
	// ahead has the nodes whose rows are to be read a few at a time, until they are built.
	ahead map[gms.Node]lookAhead
}

// FromContext returns the session that a context belongs to.
func FromContext(ctx *gms.Context) *Session { return ctx.Session.(*Session) }

// Begin is called where a statement begins.
func (s *Session) Begin() {
	s.forget()
	s.SettleAttempt()
	s.e.opt.Accounts.KeepFresh(s.e.Store)
}

// aside gives the session new notes, for a statement that is run within the running one. back
// restores the notes of the outer statement.
func (s *Session) aside() (back func()) {
	outer := s.running
	s.running = statement{}
	return func() { s.running = outer }
}

// forget drops the notes of a statement.
func (s *Session) forget() {
	s.running = statement{}
	s.ForgetChange()
}

// Settle is called when a client has received a statement's answer, or will not receive one.
func (s *Session) Settle() {
	s.forget()
	s.Session.Settle()
}

// Changing implements change.Session.
func (s *Session) Changing() *change.Statement { return &s.running.changing }

// ResultColumns returns the columns of the current statement's result; nil before it is
// executed.
func (s *Session) ResultColumns() gms.Schema { return s.running.result }

// TakeBodyStatements returns the number of statements of stored procedures that have run since its
// last call.
func (s *Session) TakeBodyStatements() uint64 {
	n := s.bodyStatements
	s.bodyStatements = 0
	return n
}
