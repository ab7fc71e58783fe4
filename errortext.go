package farmsql

import "github.com/farmsql/farmsql/sql/myerr"

// withPrefix wraps an error of a package below. Its text begins with this package's prefix and about,
// which says what the error is about; the prefixes of the packages below, which users do not know, are
// left out.
func withPrefix(about string, err error) error { return &namedError{about, err} }

type namedError struct {
	about string
	err   error
}

func (e *namedError) Error() string { return "farmsql: " + e.about + myerr.PlainText(e.err.Error()) }

func (e *namedError) Unwrap() error { return e.err }
