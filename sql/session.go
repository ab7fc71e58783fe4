package sql

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

var (
	_ gms.Session            = (*Session)(nil)
	_ gms.TransactionSession = (*Session)(nil)
	_ gms.Transaction        = (*transaction)(nil)
)

// A Session is one client's. It belongs to one goroutine at a time.
type Session struct {
	*baseSession
	e *Engine
	// forUpdate puts the rows that the present statement reads into the write
	// set.
	forUpdate bool
	// locked says that UNLOCK TABLES commits, after LOCK TABLES.
	locked bool
	// commitErr is what the last commit failed with, until it is taken.
	commitErr error
	// running is the statement at work if it is part of another one: the context has no text
	// of it.
	running sqlparser.Statement
	// result are the columns that the statement answers with, once it is being executed.
	result gms.Schema
	// body is the transaction that the statements of the stored procedure at
	// work belong to; nil if each has one of its own, or none is at work.
	body *transaction
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
	// changing says that a change without IGNORE is at work, and divided that it has divided
	// by zero, which its editor reports.
	changing, divided bool
	// load is what the INSERT that is being planned carries.
	load *load
	// view is the CREATE VIEW of a view that is being read: see readView.
	view string
	// viewDatabase is the database of a view that the statement which is being planned reads.
	viewDatabase string
	// statements counts the statements that have begun.
	statements atomic.Uint64
	// timestamp is the time that statements go by, in microseconds, if it has been set.
	timestamp atomic.Int64
	// viewDepth is how deep the views of the statement with the number viewsOf may be.
	viewDepth int
	viewsOf   uint64
	// inserted is what an INSERT inserts, until it is built, and columns are
	// where that goes.
	inserted gms.Node
	columns  gms.Schema
	// replacing is what the REPLACE at work does, nil if there is none.
	replacing *replacing
	// toldID: LAST_INSERT_ID(n) has run in the statement at work.
	toldID bool

	// What follows serves compiled statements: the variables that they ask
	// for, nil if one may have changed; memory for the key and the literals of
	// the statement at work; the statements that the user may run, and under
	// which grants; the rows that stand for a node of the plan at work; and memory for
	// rows that need no values.
	variables *compiledSettings
	key       []byte
	values    []Value
	allowed   []*Compiled
	grants    uint64
	leaf      *leaf
	room      directRoom
	// holding is the memory that the session holds.
	holding holding
	// inputs are the nodes of the statement at work whose rows are to be metered.
	inputs struct {
		lockrank.Mutex[lockrank.Leaf]
		of map[gms.Node]metering
	}
	// inVain is since when the client's transactions have had conflicts: when the first
	// of them began; zero if the last one that it committed had none.
	inVain time.Time
	// planOnly has go-mysql-server run everything.
	planOnly bool
}

// FromContext returns the session that a context belongs to.
func FromContext(ctx *gms.Context) *Session { return ctx.Session.(*Session) }

// A transaction is what go-mysql-server calls so: a FaRM transaction and what
// this package remembers about it.
type transaction struct {
	tx       *txn.Tx
	readOnly bool
	// ended says that the transaction is over, whatever the outcome.
	ended bool
	// ddl says that the statement at work changes the catalog.
	ddl bool
	// accounts says that the transaction changes accounts.
	accounts bool
	// broken says that a change of the catalog has failed half way. Nothing of
	// the transaction may be committed.
	broken bool
	// points are the places that a statement or savepoint can return to, oldest
	// first, and serial numbers them.
	points []point
	serial int
	// editing counts the editors that have begun a statement and not ended it.
	editing int
	// db is the database that was last asked for: statements ask for one again
	// and again.
	db *Database
	// rows are the changes of row counts, by the table's counter.
	rows map[region.Ptr]int64
	// born are the sequences that the transaction has created.
	born map[region.Ptr]bool
	// strays are the addresses of rows without a key of their own that the
	// present statement has read, by their contents.
	strays map[string][]region.Ptr
	// moved says where rows went that the transaction has moved or deleted.
	moved map[region.Ptr]region.Ptr
	// turns are those that the transaction has, and waitsFor is the one that it waits
	// for, both guarded by the engine's turns; takesTurns says that it has had to do
	// with any.
	turns      []*turn
	waitsFor   *turn
	takesTurns bool
	// opened is when the transaction began, if it is the client's to end.
	opened time.Time
}

// A point is a mark in the transaction. A statement's has no name.
type point struct {
	name   string
	serial int
	mark   txn.Mark
}

func (tr *transaction) String() string   { return "transaction" }
func (tr *transaction) IsReadOnly() bool { return tr.readOnly }

// mark adds a point and returns its number.
func (tr *transaction) mark(name string) int {
	tr.serial++
	tr.points = append(tr.points, point{name: name, serial: tr.serial, mark: tr.tx.Mark()})
	return tr.serial
}

// rollback returns to a point and forgets those after it; the point stays. One
// that is gone already, because an older one was returned to, is no news.
func (tr *transaction) rollback(serial int) {
	for i := range tr.points {
		if tr.points[i].serial == serial {
			tr.tx.Rollback(tr.points[i].mark)
			tr.points = tr.points[:i+1]
			return
		}
	}
}

// forget drops a point, keeping what was done since.
func (tr *transaction) forget(serial int) {
	for i := range tr.points {
		if tr.points[i].serial == serial {
			tr.points = append(tr.points[:i], tr.points[i+1:]...)
			return
		}
	}
}

func (tr *transaction) savepoint(name string) (serial int, ok bool) {
	for i := len(tr.points) - 1; i >= 0; i-- {
		if tr.points[i].name != "" && strings.EqualFold(tr.points[i].name, name) {
			return tr.points[i].serial, true
		}
	}
	return 0, false
}

// count notes that a table has n rows more, unless that is rolled back.
func (tr *transaction) count(counter region.Ptr, n int64) {
	if tr.rows == nil {
		tr.rows = make(map[region.Ptr]int64)
	}
	tr.rows[counter] += n
	tr.tx.OnRollback(func() { tr.rows[counter] -= n })
}

// current returns the context's transaction.
func current(ctx *gms.Context) *transaction {
	tr, _ := ctx.GetTransaction().(*transaction)
	if tr != nil {
		tr.tx.Within(ctx.Context)
	}
	return tr
}

// currentOf is current for a context that may have no session, or none of ours.
func currentOf(ctx *gms.Context) *transaction {
	if ctx == nil || ctx.Session == nil {
		return nil
	}
	return current(ctx)
}

// began returns the context's transaction, and begins one where go-mysql-server
// has not.
func began(ctx *gms.Context) *transaction {
	if tr := current(ctx); tr != nil {
		return tr
	}
	tr := FromContext(ctx).beginNext(gms.ReadWrite)
	tr.tx.Within(ctx.Context)
	ctx.SetTransaction(tr)
	return tr
}

func (s *Session) begin(c gms.TransactionCharacteristic) *transaction {
	tx := s.e.m.Begin()
	tx.MayBeLarge()
	return &transaction{tx: tx, readOnly: c == gms.ReadOnly}
}

// beginNext begins the transaction that a statement needs where there is none.
func (s *Session) beginNext(c gms.TransactionCharacteristic) *transaction {
	if s.settings().readOnly {
		c = gms.ReadOnly
	}
	tr := s.begin(c)
	if !s.Autocommit() {
		s.open(tr)
	}
	return tr
}

// SetIgnoreAutoCommit implements gms.Session. BEGIN sets it, for the transaction that it
// has begun.
func (s *Session) SetIgnoreAutoCommit(ignore bool) {
	s.baseSession.SetIgnoreAutoCommit(ignore)
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil && ignore {
		s.open(tr)
	}
}

// open makes a transaction that has just begun one that the client is to end. After a
// conflict it waits for others that are run again.
func (s *Session) open(tr *transaction) {
	if !tr.opened.IsZero() {
		return
	}
	tr.opened = s.e.turns.clock.Now()
	if !s.inVain.IsZero() {
		s.e.turns.awaitAgain(tr, tr.opened.Sub(s.inVain))
	}
}

// lost notes that a transaction has ended with an error.
func (s *Session) lost(tr *transaction, err error) {
	if s.inVain.IsZero() && myerr.IsConflict(err) {
		s.inVain = tr.opened
	}
}

// StartTransaction implements gms.TransactionSession.
func (s *Session) StartTransaction(ctx *gms.Context, c gms.TransactionCharacteristic) (gms.Transaction, error) {
	s.abandon()
	return s.beginNext(c), nil
}

// CommitTransaction implements gms.TransactionSession. Whatever the outcome,
// the transaction is over afterwards, and the session is ready for another.
func (s *Session) CommitTransaction(ctx *gms.Context, t gms.Transaction) error {
	tr, ok := t.(*transaction)
	if !ok || tr == nil {
		return nil
	}
	s.commitErr = nil
	if tr == s.body && !s.Explicit() {
		return nil // a statement that a trigger runs commits with the trigger's
	}
	tr.ended = true
	if tr.broken {
		s.keepConflict()
		s.Abort()
		return nil
	}
	err := tr.committable(ctx)
	if err == nil {
		err = tr.commit(ctx.Context)
	}
	if tr.accounts {
		s.e.opt.Accounts.changed(s.e)
	}
	if err != nil {
		tr.tx.Abort()
		s.clear()
		s.commitErr = myerr.Storage(err)
		s.lost(tr, s.commitErr)
		return s.commitErr
	}
	if !tr.opened.IsZero() {
		s.inVain = time.Time{}
	}
	s.e.counters.add(ctx.Context, tr.rows)
	s.baseSession.SetTransaction(nil)
	return nil
}

// commit commits, unless the statement at work has failed. After one that returns rows
// go-mysql-server commits all the same, within a context that the failure has ended. What
// the statement failed with may come of reads that do not hold: that has to be known
// before the transaction is over, and is a conflict then.
func (tr *transaction) commit(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return tr.tx.Commit(ctx)
	}
	tr.tx.Within(context.WithoutCancel(ctx))
	if err := tr.tx.Validate(); err != nil {
		return err
	}
	return ctx.Err()
}

// Rollback implements gms.TransactionSession.
func (s *Session) Rollback(ctx *gms.Context, t gms.Transaction) error {
	if tr, ok := t.(*transaction); ok && tr != nil {
		tr.abort()
	}
	return nil
}

func (tr *transaction) abort() {
	tr.tx.Abort()
	tr.ended = true
}

// SetTransaction implements gms.Session. go-mysql-server drops a failed
// statement's transaction by setting none. It also puts a transaction aside for
// the body of a stored procedure, and back after it: one that the body belongs
// to stays, and one that has ended meanwhile does not come back.
func (s *Session) SetTransaction(t gms.Transaction) {
	open, _ := s.baseSession.GetTransaction().(*transaction)
	tr, _ := t.(*transaction)
	switch {
	case tr == nil && open != nil && open == s.body && !open.ended:
		return
	case tr == nil:
		s.keepConflict()
		s.abandon()
	case tr.ended && open != nil && !open.ended:
		return
	case tr.ended:
		t = nil
	}
	s.baseSession.SetTransaction(t)
}

// keepConflict finds out whether what the statement at work has read holds, as its
// transaction is about to be dropped: the statement has failed, and whoever asks later why
// finds no transaction.
func (s *Session) keepConflict() {
	if err := s.Validate(); myerr.IsConflict(err) {
		s.commitErr = err
	}
}

// abandon aborts what is open. Aborting a transaction that has ended does
// nothing.
func (s *Session) abandon() {
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil {
		tr.abort()
	}
}

// clear makes the session forget its transaction.
func (s *Session) clear() {
	s.baseSession.SetTransaction(nil)
	s.SetIgnoreAutoCommit(false)
}

// Abort ends whatever transaction is open without effect: the client is gone,
// or the statement will be run again.
func (s *Session) Abort() {
	s.abandon()
	s.clear()
}

// Failed tells the session that the statement at work has failed. Unless the
// client has a transaction open, all that the statement did is undone. If what
// the statement has read does not hold any more, its error means nothing:
// Failed then returns a conflict, which is to be reported instead.
func (s *Session) Failed() error {
	explicit := s.Explicit()
	err := s.Validate()
	if err == nil && myerr.IsConflict(s.commitErr) {
		err = s.commitErr
	}
	if !explicit {
		s.Abort()
	}
	return err
}

// fail passes on an error that has interrupted a change of the catalog.
// go-mysql-server commits what was done before it, if it can.
func (tr *transaction) fail(err error) error {
	if err != nil {
		tr.broken = true
	}
	return myerr.Storage(err)
}

// Within has what the session still does for the statement at work, whose own context
// may have ended, wait no longer than ctx lasts.
func (s *Session) Within(ctx context.Context) {
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil {
		tr.tx.Within(ctx)
	}
}

// Validate checks that all the open transaction has read still holds. If not,
// the transaction is aborted and the error is a conflict; nothing that the
// statement found out may then be shown.
func (s *Session) Validate() error {
	tr, ok := s.baseSession.GetTransaction().(*transaction)
	if !ok || tr == nil {
		return nil
	}
	err := tr.tx.Validate()
	if err == nil || err == txn.ErrDone {
		return nil
	}
	s.Abort()
	err = myerr.Storage(err)
	s.lost(tr, err)
	return err
}

// Explicit reports whether the client has a transaction open that only it can
// end.
func (s *Session) Explicit() bool {
	if s.baseSession.GetTransaction() == nil {
		return false
	}
	if s.GetIgnoreAutoCommit() {
		return true
	}
	ctx := gms.NewContext(context.Background(), gms.WithSession(s))
	auto, err := plan.IsSessionAutocommit(ctx)
	return err == nil && !auto
}

// isOpen is Explicit for whoever knows that a transaction has begun.
func (s *Session) isOpen() bool { return s.GetIgnoreAutoCommit() || !s.settings().autocommit }

// Begin is called where a statement begins.
func (s *Session) Begin() {
	s.result = nil
	s.settle()
	s.e.opt.Accounts.keepFresh(s.e)
}

// ResultColumns returns the columns that the statement at work answers with; nil before it
// is executed.
func (s *Session) ResultColumns() gms.Schema { return s.result }

// SetForUpdate says whether the statement that follows locks the rows it reads,
// as SELECT ... FOR UPDATE does.
func (s *Session) SetForUpdate(on bool) { s.forUpdate = on }

// TakeBodyStatements returns how many statements of stored procedures have been run since
// the last time.
func (s *Session) TakeBodyStatements() uint64 {
	n := s.bodyStatements
	s.bodyStatements = 0
	return n
}

// TakeCommitError returns what the last commit failed with, once.
// go-mysql-server drops it after a statement that returns a single row.
func (s *Session) TakeCommitError() error {
	err := s.commitErr
	s.commitErr = nil
	return err
}

// CreateSavepoint implements gms.TransactionSession.
func (s *Session) CreateSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*transaction)
	if old, ok := tr.savepoint(name); ok {
		tr.forget(old)
	}
	tr.mark(name)
	return nil
}

// RollbackToSavepoint implements gms.TransactionSession.
func (s *Session) RollbackToSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*transaction)
	serial, ok := tr.savepoint(name)
	if !ok {
		return gms.ErrSavepointDoesNotExist.New(name)
	}
	tr.rollback(serial)
	return nil
}

// ReleaseSavepoint implements gms.TransactionSession. The savepoints set after
// the one that is released go with it.
func (s *Session) ReleaseSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*transaction)
	serial, ok := tr.savepoint(name)
	if !ok {
		return gms.ErrSavepointDoesNotExist.New(name)
	}
	kept := tr.points[:0]
	for _, p := range tr.points {
		if p.serial < serial || p.name == "" {
			kept = append(kept, p)
		}
	}
	tr.points = kept
	return nil
}
