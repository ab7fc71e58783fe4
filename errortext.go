package farmsql

import "github.com/farmsql/farmsql/sql/myerr"

// named says what an error of a package below is about. Its text has one prefix: who uses
// this package knows none of those below.
func named(about string, err error) error { return &namedError{about, err} }

type namedError struct {
	about string
	err   error
}

func (e *namedError) Error() string { return "farmsql: " + e.about + myerr.PlainText(e.err.Error()) }

func (e *namedError) Unwrap() error { return e.err }
