package store

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// A division by zero returns NULL with a warning. In an INSERT, UPDATE or DELETE it is an error
// if sql_mode is strict and has ERROR_FOR_DIVISION_BY_ZERO: the session notes the warning
// (Warn), and the table's editor fails.

// A change holds the notes of one INSERT, UPDATE or DELETE for the table's editor.
type change struct {
	// strict is set if the statement has no IGNORE. divided is set once the statement has divided
	// by zero, which its editor then reports.
	strict, divided bool
	// replacing is set if the statement is a REPLACE.
	replacing *replacing
	// inserting is set if the statement is an INSERT, and no REPLACE.
	inserting *inserting
}

// Changes notes that a changing statement is about to be executed. strictly is set if the
// statement has no IGNORE, so that a division by zero fails it. The statements of its triggers
// belong to it.
func (s *Session) Changes(ctx *gms.Context, strictly bool) {
	if tr := CurrentOf(ctx); tr == nil || tr.Editing == 0 {
		s.change = change{strict: strictly}
	}
}

// ForgetChange is called when a client's statement begins: the notes of the statement before do
// not concern it.
func (s *Session) ForgetChange() { s.change = change{} }

// dividedByZero returns an error if the running change has divided by zero and must not. The
// division itself only warned. A nil session has not divided.
func (s *Session) dividedByZero() error {
	if s == nil || !s.change.divided {
		return nil
	}
	s.change.divided = false
	return myerr.DivisionByZero.New()
}
