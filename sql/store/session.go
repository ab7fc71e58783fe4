package store

import (
	"context"
	"sync/atomic"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

var (
	_ gms.Session            = (*Session)(nil)
	_ gms.TransactionSession = (*Session)(nil)
)

// A Session is the tables' part of a client's session: its variables, its transaction and the
// memory that it holds. The sessions that go-mysql-server gets embed one. It is used by one
// goroutine at a time.
type Session struct {
	*baseSession
	// Store is the store of the session's machine.
	Store *Store
	// ForUpdate puts the rows that the present statement reads into the write
	// set.
	ForUpdate bool
	// commitErr is the error of the last commit, until it is taken.
	commitErr error
	// Body is the transaction of the running stored procedure's statements; nil if each
	// statement has its own, or no procedure runs.
	Body *Transaction
	// change holds the notes of the running change.
	change change
	// timestamp is the time, in microseconds, that SET timestamp has set; 0 if none.
	timestamp atomic.Int64
	// variables caches the variables that every statement needs; nil if one may have changed.
	variables *Settings
	// Holding is the memory that the session holds.
	Holding Holding
	// shelf holds the client's transaction while a statement runs beside it, otherwise nil.
	shelf *shelf
	// InVain is zero if the client's last transaction committed. Otherwise its latest
	// transactions have ended in conflicts, and InVain is when the first of them began.
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

// HoldingOf returns what the session of a context holds, nil if the session is go-mysql-server's
// own.
func HoldingOf(ctx *gms.Context) *Holding {
	if s, ok := ctx.Session.(ours); ok {
		return &s.base().Holding
	}
	return nil
}

// Began returns the session's transaction, and begins one if there is none.
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

// BeginNext begins a transaction for a statement outside transactions.
func (s *Session) BeginNext(c gms.TransactionCharacteristic) *Transaction {
	if s.Settings().readOnly {
		c = gms.ReadOnly
	}
	tr := s.NewTransaction(c)
	if !s.Autocommit() && s.shelf == nil {
		s.open(tr)
	}
	return tr
}

// SetIgnoreAutoCommit implements gms.Session. BEGIN calls it for the transaction that it has
// begun.
func (s *Session) SetIgnoreAutoCommit(ignore bool) {
	s.baseSession.SetIgnoreAutoCommit(ignore)
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil && ignore {
		s.open(tr)
	}
}

// open marks a new transaction as one that the client has to end. After a conflict it first
// waits its turn behind others that are retried.
func (s *Session) open(tr *Transaction) {
	if !tr.opened.IsZero() {
		return
	}
	tr.opened = s.Store.Turns.clock.Now()
	if !s.InVain.IsZero() {
		s.Store.Turns.awaitAgain(tr, tr.opened.Sub(s.InVain))
	}
}

// noteConflict sets InVain to the time at which tr was opened, if tr is the first transaction since the last commit to
// end with a conflict.
func (s *Session) noteConflict(tr *Transaction, err error) {
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

// CommitTransaction implements gms.TransactionSession. Whatever the outcome, the transaction is
// over afterwards, and the session is ready for the next one.
func (s *Session) CommitTransaction(ctx *gms.Context, t gms.Transaction) error {
	tr, ok := t.(*Transaction)
	if !ok || tr == nil {
		return nil
	}
	s.commitErr = nil
	if tr == s.Body && !s.Explicit() {
		return nil // a trigger's statements commit with the statement that fired it
	}
	tr.Ended = true
	if tr.broken { // the statement reports the error
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
		s.noteConflict(tr, s.commitErr)
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

// SetTransaction implements gms.Session. go-mysql-server sets nil for two reasons: to drop the
// transaction of a failed statement, and to put a transaction aside while the body of a stored
// procedure runs; after the body it sets the transaction again. SetTransaction does not put aside
// a transaction that the body belongs to, and does not bring back a transaction that the body has
// ended.
func (s *Session) SetTransaction(t gms.Transaction) {
	open, _ := s.baseSession.GetTransaction().(*Transaction)
	tr, _ := t.(*Transaction)
	isOpen := open != nil && !open.Ended
	switch {
	case tr == nil && isOpen && open == s.Body: // it belongs to the body
		return
	case tr == nil:
		s.keepConflict()
		s.Abandon()
	case tr.Ended && isOpen: // the body has begun another one
		return
	case tr.Ended:
		t = nil
	}
	s.baseSession.SetTransaction(t)
}

// keepConflict checks whether the running statement's reads still hold, before the
// transaction of the failed statement is dropped: afterwards there is none to check. It keeps
// a conflict in commitErr.
func (s *Session) keepConflict() {
	if err := s.Validate(); myerr.IsConflict(err) {
		s.commitErr = err
	}
}

// Abandon aborts the open transaction, if there is one that has not ended.
func (s *Session) Abandon() {
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil {
		tr.abort()
	}
}

// clear removes the session's transaction.
func (s *Session) clear() {
	s.baseSession.SetTransaction(nil)
	s.SetIgnoreAutoCommit(false)
}

// Abort aborts and removes the open transaction: the client is gone, or the statement will be
// retried.
func (s *Session) Abort() {
	s.Abandon()
	s.clear()
}

// Failed tells the session that the running statement has failed. It undoes all that the
// statement did, unless the client has a transaction open. If the statement's reads do not
// hold any more, its error may be a consequence of that: Failed then returns a conflict, to
// be reported instead.
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

// Within makes ctx bound the remaining waits of the open transaction, because the context of the
// running statement may have ended.
func (s *Session) Within(ctx context.Context) {
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil {
		tr.Tx.Within(ctx)
	}
}

// Validate checks that all reads of the open transaction still hold. If not, it aborts the
// transaction and returns a conflict; the caller must then not show any result of the
// statement.
func (s *Session) Validate() error { return s.validate((*txn.Tx).Validate) }

// ValidateRecent is Validate for a statement of which the client is told only that it has succeeded: it checks what the
// statement has read, and all earlier reads only now and then (see txn.Tx.ValidateRecent). A transaction of many
// changes would otherwise take time in proportion to the square of their number.
func (s *Session) ValidateRecent() error { return s.validate((*txn.Tx).ValidateRecent) }

func (s *Session) validate(check func(*txn.Tx) error) error {
	tr, ok := s.baseSession.GetTransaction().(*Transaction)
	if !ok || tr == nil {
		return nil
	}
	err := check(tr.Tx)
	if err == nil || err == txn.ErrDone {
		return nil
	}
	s.Abort()
	err = myerr.Storage(err)
	s.noteConflict(tr, err)
	return err
}

// Explicit reports whether the client has opened a transaction, which it has to end itself.
func (s *Session) Explicit() bool {
	if s.baseSession.GetTransaction() == nil || s.shelf != nil {
		return false
	}
	if s.GetIgnoreAutoCommit() {
		return true
	}
	ctx := gms.NewContext(context.Background(), gms.WithSession(s))
	auto, err := plan.IsSessionAutocommit(ctx)
	return err == nil && !auto
}

// IsOpen is like Explicit, for callers that know that a transaction has begun.
func (s *Session) IsOpen() bool { return s.GetIgnoreAutoCommit() || !s.Settings().Autocommit }

// SetForUpdate says whether the next statement locks the rows that it reads, as SELECT ...
// FOR UPDATE does.
func (s *Session) SetForUpdate(on bool) { s.ForUpdate = on }

// TakeCommitError returns the error of the last commit, once. go-mysql-server drops that
// error after a statement that returns a single row.
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

// ReleaseSavepoint implements gms.TransactionSession. It also releases the savepoints that
// were set after this one.
func (s *Session) ReleaseSavepoint(ctx *gms.Context, t gms.Transaction, name string) error {
	tr := t.(*Transaction)
	serial, ok := tr.savepoint(name)
	if !ok {
		return gms.ErrSavepointDoesNotExist.New(name)
	}
	kept := tr.points[:0]
	for _, p := range tr.points {
		if p.serial < serial || p.name == "" { // a statement's point has no name
			kept = append(kept, p)
		}
	}
	tr.points = kept
	return nil
}
