package call

import "errors"

// Why a call fails, besides the context's error. Match with errors.Is.
var (
	// ErrClosed: this endpoint is closed.
	ErrClosed = errors.New("call: endpoint is closed")
	// ErrOtherLife: the machine has been started again; the life that was meant
	// is over.
	ErrOtherLife = errors.New("call: the machine has another incarnation")
	// ErrUnknownKind: the other side has no handler for this kind of call. It
	// comes together with the context's error, because a machine that is starting
	// has no handlers yet, and is asked again.
	ErrUnknownKind = errors.New("call: no handler for this kind of call")
	// ErrTooLong: argument or reply has more than BytesMax bytes.
	ErrTooLong = errors.New("call: message is too long")
)

// A RemoteError is what a handler returned as its error.
type RemoteError struct {
	Text string
	Err  error // one that Know was called with at both sides, or nil
}

func (e *RemoteError) Error() string { return e.Text }

func (e *RemoteError) Unwrap() error { return e.Err }
