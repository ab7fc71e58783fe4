package store

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
	_ gms.Session            = (*Session)(nil)
	_ gms.TransactionSession = (*Session)(nil)
)

// A Session is what tables need of a client's session: its variables, its transaction
// and the memory that it holds. The sessions that go-mysql-server knows embed one. It
// belongs to one goroutine at a time.
type Session struct {
	*baseSession
	// Store is that of the machine which the session is at.
	Store *Store
	// ForUpdate puts the rows that the present statement reads into the write
	// set.
	ForUpdate bool
	// commitErr is what the last commit failed with, until it is taken.
	commitErr error
	// Running is the statement at work if it is part of another one: the context has no text
	// of it.
	Running sqlparser.Statement
	// Body is the transaction that the statements of the stored procedure at
	// work belong to; nil if each has one of its own, or none is at work.
	Body *Transaction
	// changing says that a change without IGNORE is at work, and divided that it has divided
	// by zero, which its editor reports.
	changing, divided bool
	// ViewDatabase is the database of a view that the statement which is being planned reads.
	ViewDatabase string
	// Statements counts the statements that have begun.
	Statements atomic.Uint64
	// timestamp is the time that statements go by, in microseconds, if it has been set.
	timestamp atomic.Int64
	// replacing is what the REPLACE at work does, nil if there is none.
	replacing *replacing
	// variables are those that every statement asks for, nil if one may have changed.
	variables *Settings
	// Holding is the memory that the session holds.
	Holding Holding
	// InVain is since when the client's transactions have had conflicts: when the first
	// of them began; zero if the last one that it committed had none.
	InVain time.Time
}

// Init makes s the session of a new client.
func (s *Session) Init(st *Store, server string, c gms.Client, id uint32) {
	s.baseSession, s.Store = newBaseSession(server, c, id), st
	s.Holding.memory = st.cfg.Memory
}

// base implements ours.
func (s *Session) base() *Session { return s }

// ours are the sessions that embed a Session.
type ours interface{ base() *Session }

// FromContext returns the session that a context belongs to.
func FromContext(ctx *gms.Context) *Session { return ctx.Session.(ours).base() }

// Began is the function Began for a context of the session.
func (s *Session) Began(ctx *gms.Context) *Transaction {
	if tr := Current(ctx); tr != nil {
		return tr
	}
	tr := s.BeginNext(gms.ReadWrite)
	tr.Tx.Within(ctx.Context)
	ctx.SetTransaction(tr)
	return tr
}

// NewTransaction begins a transaction without making it the session's.
func (s *Session) NewTransaction(c gms.TransactionCharacteristic) *Transaction {
	tx := s.Store.Machine.Begin()
	tx.MayBeLarge()
	return &Transaction{Tx: tx, ReadOnly: c == gms.ReadOnly}
}

// BeginNext begins the transaction that a statement needs where there is none.
func (s *Session) BeginNext(c gms.TransactionCharacteristic) *Transaction {
	if s.Settings().readOnly {
		c = gms.ReadOnly
	}
	tr := s.NewTransaction(c)
	if !s.Autocommit() {
		s.open(tr)
	}
	return tr
}

// SetIgnoreAutoCommit implements gms.Session. BEGIN sets it, for the transaction that it
// has begun.
func (s *Session) SetIgnoreAutoCommit(ignore bool) {
	s.baseSession.SetIgnoreAutoCommit(ignore)
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil && ignore {
		s.open(tr)
	}
}

// open makes a transaction that has just begun one that the client is to end. After a
// conflict it waits for others that are run again.
func (s *Session) open(tr *Transaction) {
	if !tr.opened.IsZero() {
		return
	}
	tr.opened = s.Store.Turns.clock.Now()
	if !s.InVain.IsZero() {
		s.Store.Turns.awaitAgain(tr, tr.opened.Sub(s.InVain))
	}
}

// lost notes that a transaction has ended with an error.
func (s *Session) lost(tr *Transaction, err error) {
	if s.InVain.IsZero() && myerr.IsConflict(err) {
		s.InVain = tr.opened
	}
}

// StartTransaction implements gms.TransactionSession.
func (s *Session) StartTransaction(ctx *gms.Context, c gms.TransactionCharacteristic) (gms.Transaction, error) {
	s.Abandon()
	return s.BeginNext(c), nil
}

// End commits a transaction, or rolls it back.
func (s *Session) End(ctx *gms.Context, tr *Transaction, rollsBack bool) error {
	if rollsBack {
		return s.Rollback(ctx, tr)
	}
	return s.CommitTransaction(ctx, tr)
}

// CommitTransaction implements gms.TransactionSession. Whatever the outcome,
// the transaction is over afterwards, and the session is ready for another.
func (s *Session) CommitTransaction(ctx *gms.Context, t gms.Transaction) error {
	tr, ok := t.(*Transaction)
	if !ok || tr == nil {
		return nil
	}
	s.commitErr = nil
	if tr == s.Body && !s.Explicit() {
		return nil // a statement that a trigger runs commits with the trigger's
	}
	tr.Ended = true
	if tr.broken {
		s.keepConflict()
		s.Abort()
		return nil
	}
	err := tr.committable(ctx, s.Store)
	if err == nil {
		err = tr.commit(ctx.Context)
	}
	if tr.After != nil {
		tr.After()
	}
	if err != nil {
		tr.Tx.Abort()
		s.clear()
		s.commitErr = myerr.Storage(err)
		s.lost(tr, s.commitErr)
		return s.commitErr
	}
	if !tr.opened.IsZero() {
		s.InVain = time.Time{}
	}
	s.Store.Counters.Add(ctx.Context, tr.rows)
	s.baseSession.SetTransaction(nil)
	return nil
}

// Rollback implements gms.TransactionSession.
func (s *Session) Rollback(ctx *gms.Context, t gms.Transaction) error {
	if tr, ok := t.(*Transaction); ok && tr != nil {
		tr.abort()
	}
	return nil
}

// SetTransaction implements gms.Session. go-mysql-server drops a failed
// statement's transaction by setting none. It also puts a transaction aside for
// the body of a stored procedure, and back after it: one that the body belongs
// to stays, and one that has ended meanwhile does not come back.
func (s *Session) SetTransaction(t gms.Transaction) {
	open, _ := s.baseSession.GetTransaction().(*Transaction)
	tr, _ := t.(*Transaction)
	switch {
	case tr == nil && open != nil && open == s.Body && !open.Ended:
		return
	case tr == nil:
		s.keepConflict()
		s.Abandon()
	case tr.Ended && open != nil && !open.Ended:
		return
	case tr.Ended:
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

// Abandon aborts what is open. Aborting a transaction that has ended does
// nothing.
func (s *Session) Abandon() {
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil {
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
	s.Abandon()
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

// Within has what the session still does for the statement at work, whose own context
// may have ended, wait no longer than ctx lasts.
func (s *Session) Within(ctx context.Context) {
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil {
		tr.Tx.Within(ctx)
	}
}

// Validate checks that all the open transaction has read still holds. If not,
// the transaction is aborted and the error is a conflict; nothing that the
// statement found out may then be shown.
func (s *Session) Validate() error {
	tr, ok := s.baseSession.GetTransaction().(*Transaction)
	if !ok || tr == nil {
		return nil
	}
	err := tr.Tx.Validate()
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

// IsOpen is Explicit for whoever knows that a transaction has begun.
func (s *Session) IsOpen() bool { return s.GetIgnoreAutoCommit() || !s.Settings().Autocommit }

// SetForUpdate says whether the statement that follows locks the rows it reads,
// as SELECT ... FOR UPDATE does.
func (s *Session) SetForUpdate(on bool) { s.ForUpdate = on }

// TakeCommitError returns what the last commit failed with, once.
// go-mysql-server drops it after a statement that returns a single row.
func (s *Session) TakeCommitError() error {
	err := s.commitErr
	s.commitErr = nil
	return err
}

// CreateSavepoint implements gms.TransactionSession.
func (s *Session) CreateSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*Transaction)
	if old, ok := tr.savepoint(name); ok {
		tr.forget(old)
	}
	tr.mark(name)
	return nil
}

// RollbackToSavepoint implements gms.TransactionSession.
func (s *Session) RollbackToSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*Transaction)
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
	tr := t.(*Transaction)
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
func (s *Session) GetCurrentDatabase() string {
	return cmp.Or(s.baseSession.GetCurrentDatabase(), s.ViewDatabase)
}
