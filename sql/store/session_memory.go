package store

import (
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/compat"
)

var _ compat.Lender = (*Session)(nil)

// SetUserVariable implements gms.Session.
func (s *Session) SetUserVariable(ctx *gms.Context, name string, value any, t gms.Type) error {
	if err := s.Holding.keep(name, ValueMemory(value)+int64(len(name))); err != nil {
		return err
	}
	return s.baseSession.SetUserVariable(ctx, name, value, t)
}

// holdRead counts what the transaction has read so far.
func (s *Session) holdRead(tr *Transaction) error {
	if s.Holding.memory == nil {
		return nil
	}
	if read := tr.Tx.Held(); read > readBytes {
		return s.Holding.hold(read)
	}
	return nil
}

// readBytes is what a transaction may have read without being counted.
const readBytes = 64 << 10

// textName stands for the text of the statement at work among the names of variables, and
// preparedName, with a number, for that of a prepared one. No variable has such a name.
const (
	textName     = "\x00text"
	preparedName = "\x00prepared"
)

// TakeText counts what a statement takes whose text has yet to be parsed, and values that
// are bound to it. It stays until Settle.
func (s *Session) TakeText(text string, bound int64) error {
	n := textMemory(text) + bound
	if n <= freeBytes/2 && s.Holding.granted.Load() == 0 {
		return nil
	}
	return s.Holding.keep(textName, n)
}

// KeepPrepared counts a prepared statement, and one with an empty text no more.
func (s *Session) KeepPrepared(id uint32, text string) error {
	return s.Holding.keep(preparedName+strconv.FormatUint(uint64(id), 10), textMemory(text))
}

// Take counts n bytes that the listener holds for the statement at work, until Settle.
func (s *Session) Take(n int64) error { return s.Holding.Take(n) }

// Settle is called when a client has been given the answer to a statement, or will not get
// one: nothing is left of it then but its effects.
func (s *Session) Settle() {
	s.Holding.drop(textName)
	s.SettleAttempt()
}

// SettleAttempt is Settle for an attempt to run a statement.
func (s *Session) SettleAttempt() {
	s.Holding.forgetInputs()
	if s.Holding.bytes.Load() == 0 && s.Holding.granted.Load() == 0 {
		return
	}
	read := int64(0)
	if tr, ok := s.baseSession.GetTransaction().(*Transaction); ok && tr != nil && !tr.Ended {
		read = tr.Tx.Held()
	}
	s.Holding.settle(read)
}

// CommandBegin implements gms.LifecycleAwareSession.
func (s *Session) CommandBegin() error { return nil }

// CommandEnd implements gms.LifecycleAwareSession.
func (s *Session) CommandEnd() {}

// SessionEnd implements gms.LifecycleAwareSession. A transaction that the client has left
// open ends: while it is there, nothing that is freed anywhere can be used again.
func (s *Session) SessionEnd() {
	s.Abort()
	s.Holding.end()
}

// Lend counts n bytes until give is called, or says why they cannot be had.
func (s *Session) Lend(n int64) (give func(), err error) {
	if err := s.Holding.Take(n); err != nil {
		return nil, err
	}
	return func() { s.Holding.Give(n) }, nil
}
