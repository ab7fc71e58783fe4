package sql

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

var (
	_ gms.Session            = (*storeSession)(nil)
	_ gms.TransactionSession = (*storeSession)(nil)
)

// A storeSession is what tables need of a client's session: its variables, its transaction
// and the memory that it holds. The sessions that go-mysql-server knows embed one. It
// belongs to one goroutine at a time.
type storeSession struct {
	*baseSession
	st *Store
	// forUpdate puts the rows that the present statement reads into the write
	// set.
	forUpdate bool
	// commitErr is what the last commit failed with, until it is taken.
	commitErr error
	// running is the statement at work if it is part of another one: the context has no text
	// of it.
	running sqlparser.Statement
	// body is the transaction that the statements of the stored procedure at
	// work belong to; nil if each has one of its own, or none is at work.
	body *transaction
	// changing says that a change without IGNORE is at work, and divided that it has divided
	// by zero, which its editor reports.
	changing, divided bool
	// viewDatabase is the database of a view that the statement which is being planned reads.
	viewDatabase string
	// statements counts the statements that have begun.
	statements atomic.Uint64
	// timestamp is the time that statements go by, in microseconds, if it has been set.
	timestamp atomic.Int64
	// replacing is what the REPLACE at work does, nil if there is none.
	replacing *replacing
	// variables are those that compiled statements ask for, nil if one may have changed.
	variables *settings
	// holding is the memory that the session holds.
	holding holding
	// inVain is since when the client's transactions have had conflicts: when the first
	// of them began; zero if the last one that it committed had none.
	inVain time.Time
}

// init makes s the session of a new client.
func (s *storeSession) init(st *Store, server string, c gms.Client, id uint32) {
	s.baseSession, s.st = newBaseSession(server, c, id), st
	s.holding.memory = st.cfg.Memory
}

// base implements ours.
func (s *storeSession) base() *storeSession { return s }

// ours are the sessions that embed a storeSession.
type ours interface{ base() *storeSession }

// sessionOf returns the session that a context belongs to.
func sessionOf(ctx *gms.Context) *storeSession { return ctx.Session.(ours).base() }

// sessionIn is sessionOf for a context that may have a session of go-mysql-server's own, or none.
func sessionIn(ctx *gms.Context) (*storeSession, bool) {
	s, ok := ctx.Session.(ours)
	if !ok {
		return nil, false
	}
	return s.base(), true
}

// began is began for the session's own context.
func (s *storeSession) began(ctx *gms.Context) *transaction {
	if tr := current(ctx); tr != nil {
		return tr
	}
	tr := s.beginNext(gms.ReadWrite)
	tr.tx.Within(ctx.Context)
	ctx.SetTransaction(tr)
	return tr
}

func (s *storeSession) begin(c gms.TransactionCharacteristic) *transaction {
	tx := s.st.m.Begin()
	tx.MayBeLarge()
	return &transaction{tx: tx, readOnly: c == gms.ReadOnly}
}

// beginNext begins the transaction that a statement needs where there is none.
func (s *storeSession) beginNext(c gms.TransactionCharacteristic) *transaction {
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
func (s *storeSession) SetIgnoreAutoCommit(ignore bool) {
	s.baseSession.SetIgnoreAutoCommit(ignore)
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil && ignore {
		s.open(tr)
	}
}

// open makes a transaction that has just begun one that the client is to end. After a
// conflict it waits for others that are run again.
func (s *storeSession) open(tr *transaction) {
	if !tr.opened.IsZero() {
		return
	}
	tr.opened = s.st.turns.clock.Now()
	if !s.inVain.IsZero() {
		s.st.turns.awaitAgain(tr, tr.opened.Sub(s.inVain))
	}
}

// lost notes that a transaction has ended with an error.
func (s *storeSession) lost(tr *transaction, err error) {
	if s.inVain.IsZero() && myerr.IsConflict(err) {
		s.inVain = tr.opened
	}
}

// StartTransaction implements gms.TransactionSession.
func (s *storeSession) StartTransaction(ctx *gms.Context, c gms.TransactionCharacteristic) (gms.Transaction, error) {
	s.abandon()
	return s.beginNext(c), nil
}

// CommitTransaction implements gms.TransactionSession. Whatever the outcome,
// the transaction is over afterwards, and the session is ready for another.
func (s *storeSession) CommitTransaction(ctx *gms.Context, t gms.Transaction) error {
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
	err := tr.committable(ctx, s.st)
	if err == nil {
		err = tr.commit(ctx.Context)
	}
	if tr.after != nil {
		tr.after()
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
	s.st.counters.add(ctx.Context, tr.rows)
	s.baseSession.SetTransaction(nil)
	return nil
}

// Rollback implements gms.TransactionSession.
func (s *storeSession) Rollback(ctx *gms.Context, t gms.Transaction) error {
	if tr, ok := t.(*transaction); ok && tr != nil {
		tr.abort()
	}
	return nil
}

// SetTransaction implements gms.Session. go-mysql-server drops a failed
// statement's transaction by setting none. It also puts a transaction aside for
// the body of a stored procedure, and back after it: one that the body belongs
// to stays, and one that has ended meanwhile does not come back.
func (s *storeSession) SetTransaction(t gms.Transaction) {
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
func (s *storeSession) keepConflict() {
	if err := s.Validate(); myerr.IsConflict(err) {
		s.commitErr = err
	}
}

// abandon aborts what is open. Aborting a transaction that has ended does
// nothing.
func (s *storeSession) abandon() {
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil {
		tr.abort()
	}
}

// clear makes the session forget its transaction.
func (s *storeSession) clear() {
	s.baseSession.SetTransaction(nil)
	s.SetIgnoreAutoCommit(false)
}

// Abort ends whatever transaction is open without effect: the client is gone,
// or the statement will be run again.
func (s *storeSession) Abort() {
	s.abandon()
	s.clear()
}

// Failed tells the session that the statement at work has failed. Unless the
// client has a transaction open, all that the statement did is undone. If what
// the statement has read does not hold any more, its error means nothing:
// Failed then returns a conflict, which is to be reported instead.
func (s *storeSession) Failed() error {
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

// Within has what the session still does for the statement at work, whose own context
// may have ended, wait no longer than ctx lasts.
func (s *storeSession) Within(ctx context.Context) {
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil {
		tr.tx.Within(ctx)
	}
}

// Validate checks that all the open transaction has read still holds. If not,
// the transaction is aborted and the error is a conflict; nothing that the
// statement found out may then be shown.
func (s *storeSession) Validate() error {
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
func (s *storeSession) Explicit() bool {
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
func (s *storeSession) isOpen() bool { return s.GetIgnoreAutoCommit() || !s.settings().autocommit }

// SetForUpdate says whether the statement that follows locks the rows it reads,
// as SELECT ... FOR UPDATE does.
func (s *storeSession) SetForUpdate(on bool) { s.forUpdate = on }

// TakeCommitError returns what the last commit failed with, once.
// go-mysql-server drops it after a statement that returns a single row.
func (s *storeSession) TakeCommitError() error {
	err := s.commitErr
	s.commitErr = nil
	return err
}

// CreateSavepoint implements gms.TransactionSession.
func (s *storeSession) CreateSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*transaction)
	if old, ok := tr.savepoint(name); ok {
		tr.forget(old)
	}
	tr.mark(name)
	return nil
}

// RollbackToSavepoint implements gms.TransactionSession.
func (s *storeSession) RollbackToSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
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
func (s *storeSession) ReleaseSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
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

// GetCurrentDatabase implements gms.Session.
func (s *storeSession) GetCurrentDatabase() string {
	return cmp.Or(s.baseSession.GetCurrentDatabase(), s.viewDatabase)
}
