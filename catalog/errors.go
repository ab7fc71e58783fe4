package catalog

import "errors"

// Errors that callers distinguish with errors.Is.
var (
	// ErrNotFound means that nothing has the name.
	ErrNotFound = errors.New("catalog: not found")
	// ErrExists means that something has the name already.
	ErrExists = errors.New("catalog: exists already")
	// ErrAltering means that another statement is rewriting the table, and has
	// not finished within the time that this statement waits.
	ErrAltering = errors.New("catalog: table is being altered")
	// ErrTooLarge means that an entry does not fit into one object.
	ErrTooLarge = errors.New("catalog: entry too large")
	// ErrExhausted means that a sequence has given out its last number.
	ErrExhausted = errors.New("catalog: sequence exhausted")
)
