// Package outcome defines the errors with which transactions, and functions that are shipped to
// other machines, end. Callers tell them apart with errors.Is. A function's error travels as a Code
// and a text, and matches the same errors at the machine that shipped it.
package outcome

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrConflict matches every txn.AbortError: another transaction came first. Running the
	// transaction again may succeed.
	ErrConflict = errors.New("txn: conflict with another transaction")
	// ErrTooLarge means that the transaction's writes cannot fit into the logs of its participants.
	ErrTooLarge = errors.New("txn: transaction too large")
	// ErrLogFull means that a participant's log stayed full for the whole wait: its records were
	// not truncated.
	ErrLogFull = errors.New("txn: log full")
	// ErrNoRegion means that an address lies in a region that this
	// configuration does not know.
	ErrNoRegion = errors.New("txn: no such region")
	// ErrInDoubt means that the transaction may or may not have committed, and that this machine
	// will not learn which: it was closed or evicted before recovery had decided, this instance
	// never replaces machines, or the wait exceeded the machine's patience (then the error is a
	// wait.ErrUnavailable, too).
	ErrInDoubt = errors.New("txn: outcome unknown until recovery")
	// ErrClosed means that the machine is shutting down.
	ErrClosed = errors.New("txn: machine closed")
	// ErrEvicted means that this machine is no longer a member of the configuration: the
	// transaction can be run on another machine.
	ErrEvicted = errors.New("txn: machine evicted from the configuration")
	// ErrLost means that the other machine has left the configuration. The request can be made
	// again, to the machine that replaces that one. The error is an ErrConflict, too.
	ErrLost error = lostError{}
)

type lostError struct{}

func (lostError) Error() string { return "txn: machine has left the configuration" }

// Is makes a lost machine a conflict: running the transaction again helps.
func (lostError) Is(target error) bool { return target == ErrConflict }

// InDoubt returns an ErrInDoubt whose reason is err.
func InDoubt(err error) error { return fmt.Errorf("%w: %w", ErrInDoubt, err) }
