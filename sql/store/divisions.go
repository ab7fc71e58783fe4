package store

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// Dividing by zero makes NULL, with a warning. In a change it is an error if sql_mode is strict
// and has ERROR_FOR_DIVISION_BY_ZERO: the session notes the warning (Warn), and the editor of
// what is changed fails.

// Changes notes that a change is about to be executed; one with IGNORE may divide by zero. Those
// of its triggers are part of it.
func (s *Session) Changes(ctx *gms.Context, strictly bool) {
	if tr := CurrentOf(ctx); tr == nil || tr.Editing == 0 {
		s.changing, s.divided = strictly, false
	}
}

// dividedByZero is an error if the change at work has divided by zero and must not: of an
// expression it is a warning. A nil session has not divided.
func (s *Session) dividedByZero() error {
	if s == nil || !s.divided {
		return nil
	}
	s.divided = false
	return myerr.DivisionByZero.New()
}
