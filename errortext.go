package farmsql

import "github.com/farmsql/farmsql/sql/myerr"

// withPrefix wraps an error of a package below. The text begins with this package's prefix and the
// subject, and leaves out the prefixes of the packages below, which users do not know.
func withPrefix(subject string, err error) error { return &namedError{subject, err} }

type namedError struct {
	subject string
	err     error
}

func (e *namedError) Error() string { return "farmsql: " + e.subject + myerr.PlainText(e.err.Error()) }

func (e *namedError) Unwrap() error { return e.err }
