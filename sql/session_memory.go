package sql

import (
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/compat"
)

var _ compat.Lender = (*storeSession)(nil)

// SetUserVariable implements gms.Session.
func (s *storeSession) SetUserVariable(ctx *gms.Context, name string, value any, t gms.Type) error {
	if err := s.holding.keep(name, valueMemory(value)+int64(len(name))); err != nil {
		return err
	}
	return s.baseSession.SetUserVariable(ctx, name, value, t)
}

// holdRead counts what the transaction has read so far.
func (s *storeSession) holdRead(tr *transaction) error {
	if s.holding.memory == nil {
		return nil
	}
	if read := tr.tx.Held(); read > readBytes {
		return s.holding.hold(read)
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
func (s *storeSession) TakeText(text string, bound int64) error {
	n := textMemory(text) + bound
	if n <= freeBytes/2 && s.holding.granted.Load() == 0 {
		return nil
	}
	return s.holding.keep(textName, n)
}

// KeepPrepared counts a prepared statement, and one with an empty text no more.
func (s *storeSession) KeepPrepared(id uint32, text string) error {
	return s.holding.keep(preparedName+strconv.FormatUint(uint64(id), 10), textMemory(text))
}

// Take counts n bytes that the listener holds for the statement at work, until Settle.
func (s *storeSession) Take(n int64) error { return s.holding.Take(n) }

// Settle is called when a client has been given the answer to a statement, or will not get
// one: nothing is left of it then but its effects.
func (s *storeSession) Settle() {
	s.holding.drop(textName)
	s.settle()
}

// settle is Settle for an attempt to run a statement.
func (s *storeSession) settle() {
	s.holding.forgetInputs()
	if s.holding.bytes.Load() == 0 && s.holding.granted.Load() == 0 {
		return
	}
	read := int64(0)
	if tr, ok := s.baseSession.GetTransaction().(*transaction); ok && tr != nil && !tr.ended {
		read = tr.tx.Held()
	}
	s.holding.settle(read)
}

// CommandBegin implements gms.LifecycleAwareSession.
func (s *storeSession) CommandBegin() error { return nil }

// CommandEnd implements gms.LifecycleAwareSession.
func (s *storeSession) CommandEnd() {}

// SessionEnd implements gms.LifecycleAwareSession. A transaction that the client has left
// open ends: while it is there, nothing that is freed anywhere can be used again.
func (s *storeSession) SessionEnd() {
	s.Abort()
	s.holding.end()
}

// lend counts n bytes until give is called, or says why they cannot be had.
func (s *storeSession) Lend(n int64) (give func(), err error) {
	if err := s.holding.Take(n); err != nil {
		return nil, err
	}
	return func() { s.holding.Give(n) }, nil
}
