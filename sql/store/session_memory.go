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
		return s.Holding.setRead(read)
	}
	return nil
}

// readBytes is the number of bytes that a transaction may read before they are counted.
const readBytes = 64 << 10

// textName is the pseudo-variable under which the running statement's text is counted;
// preparedName, with a number appended, is that of a prepared statement. No variable has
// such a name.
const (
	textName     = "\x00text"
	preparedName = "\x00prepared"
)

// TakeText counts, until Settle, the memory of a statement that is about to be parsed, and
// of the values bound to it.
func (s *Session) TakeText(text string, bound int64) error {
	n := textMemory(text) + bound
	if n <= freeBytes/2 && s.Holding.granted.Load() == 0 { // too little to be worth counting
		return nil
	}
	return s.Holding.keep(textName, n)
}

// KeepPrepared counts the memory of a prepared statement until it is called with an empty text for
// the same id.
func (s *Session) KeepPrepared(id uint32, text string) error {
	return s.Holding.keep(preparedName+strconv.FormatUint(uint64(id), 10), textMemory(text))
}

// Take counts n bytes that the listener holds for the statement at work, until Settle.
func (s *Session) Take(n int64) error { return s.Holding.Take(n) }

// Settle is called when a client has received a statement's answer, or will not receive
// one: then all memory of the statement is free.
func (s *Session) Settle() {
	s.Holding.drop(textName)
	s.SettleAttempt()
}

// SettleAttempt is like Settle, for one attempt to run a statement: the memory of the statement's
// text stays counted.
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

// SessionEnd implements gms.LifecycleAwareSession. It aborts a transaction that the client has left
// open, because an open transaction prevents freed memory everywhere from being reused.
func (s *Session) SessionEnd() {
	s.Abort()
	s.Holding.end()
}

// Lend counts n bytes until give is called, or returns an error.
func (s *Session) Lend(n int64) (give func(), err error) {
	if err := s.Holding.Take(n); err != nil {
		return nil, err
	}
	return func() { s.Holding.Give(n) }, nil
}
