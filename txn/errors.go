package txn

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrConflict matches every *AbortError: another transaction came first. Running the
	// transaction again may succeed.
	ErrConflict = errors.New("txn: conflict with another transaction")
	// ErrDone is returned by every method of a transaction that has ended.
	ErrDone = errors.New("txn: transaction has already ended")
	// ErrTooLarge means that the transaction's writes cannot fit into the logs of its participants.
	ErrTooLarge = errors.New("txn: transaction too large")
	// ErrLogFull means that a participant's log stayed full for the whole wait: its records were
	// not truncated.
	ErrLogFull = errors.New("txn: log full")
	// ErrNoRegion means that an address lies in a region that this
	// configuration does not know.
	ErrNoRegion = errors.New("txn: no such region")
	// ErrInDoubt means that the transaction may have committed or not, and that this machine will
	// not learn which: it was closed or evicted before recovery had decided, there is no recovery
	// (Config.Alive), or the wait exceeded Config.Patience (then the error is an wait.ErrUnavailable,
	// too).
	ErrInDoubt = errors.New("txn: outcome unknown until recovery")
	// ErrStale is the error of Intent.Prepare and Question.Ask when the fresh copies that they got
	// do not belong together. They are then called again.
	ErrStale = errors.New("txn: copies do not belong together")
	// ErrClosed means that the machine is shutting down.
	ErrClosed = errors.New("txn: machine closed")
	// ErrEvicted means that this machine is no member of the configuration any
	// more: the transaction can be run on another.
	ErrEvicted = errors.New("txn: machine evicted from the configuration")
	// ErrLost means that the other machine has left the configuration. The request can be made
	// again to the machine that replaces it; the error is an ErrConflict, too.
	ErrLost error = lostError{}
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
// it. errors.Is(err, ErrConflict) holds for every AbortError.
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

// Is makes every abort an ErrConflict, and one over a freed object a
// region.ErrFreed too.
func (e *AbortError) Is(target error) bool {
	return target == ErrConflict || target == region.ErrFreed && e.Reason == ReasonFreed
}

type lostError struct{}

func (lostError) Error() string { return "txn: machine has left the configuration" }

// Is makes a lost machine a conflict: running the transaction again helps.
func (lostError) Is(target error) bool { return target == ErrConflict }

func inDoubtError(err error) error { return fmt.Errorf("%w: %w", ErrInDoubt, err) }

func abort(r Reason, a region.Addr) error { return &AbortError{Reason: r, Addr: a} }
