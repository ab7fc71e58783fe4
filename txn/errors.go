package txn

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Errors that callers distinguish with errors.Is, in addition to those of package outcome.
var (
	// ErrDone is returned by every method of a transaction that has ended.
	ErrDone = errors.New("txn: transaction has already ended")
	// ErrStale is returned by Intent.Prepare and Question.Ask if the index changed while they read
	// it, so that their copies do not belong together. They are then called again.
	ErrStale = errors.New("txn: copies do not belong together")
)

// A Reason says why a transaction aborted. The enumeration is closed: each
// abort has exactly one, and each is counted in Stats.
type Reason uint8

const (
	// ReasonLock: an object to be written was changed, or stayed locked by another transaction for
	// longer than this one would wait.
	ReasonLock Reason = iota
	// ReasonValidate: an object that was read has changed.
	ReasonValidate
	// ReasonAnswer: an index question, asked again, got another answer.
	ReasonAnswer
	// ReasonFreed: a pointer led to an object that has been freed.
	ReasonFreed
	// ReasonBusy: an object stayed locked for longer than a reader waits.
	ReasonBusy
	// ReasonUser: the caller aborted.
	ReasonUser
	// ReasonMoved: a machine that took part in the transaction has left the configuration.
	ReasonMoved
	reasons
)

// Reasons is how many abort reasons there are.
const Reasons = int(reasons)

var reasonNames = [Reasons]string{"lock", "validate", "answer", "freed", "busy", "user", "moved"}

func (r Reason) String() string { return reasonNames[r] }

// An AbortError reports that a transaction was aborted, with the reason and the object that caused
// it. errors.Is(err, outcome.ErrConflict) holds for every AbortError.
type AbortError struct {
	Reason Reason
	Addr   region.Addr
}

func (e *AbortError) Error() string {
	if e.Addr == 0 {
		return fmt.Sprintf("txn: aborted: %v", e.Reason)
	}
	return fmt.Sprintf("txn: aborted: %v at %v", e.Reason, e.Addr)
}

// Is reports that every abort matches outcome.ErrConflict, and that an abort because of a freed
// object matches region.ErrFreed, too.
func (e *AbortError) Is(target error) bool {
	return target == outcome.ErrConflict || (target == region.ErrFreed && e.Reason == ReasonFreed)
}

func abort(r Reason, a region.Addr) error { return &AbortError{Reason: r, Addr: a} }
