package farmsql

import "github.com/farmsql/farmsql/sql/myerr"

// withPrefix adds what an error of a package below is about. The text has one prefix only, because
// users of this package do not know the packages below.
func withPrefix(about string, err error) error { return &namedError{about, err} }

type namedError struct {
	about string
	err   error
}

func (e *namedError) Error() string { return "farmsql: " + e.about + myerr.PlainText(e.err.Error()) }

func (e *namedError) Unwrap() error { return e.err }
