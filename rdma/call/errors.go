package call

import "errors"

// Errors of calls, besides the context's. Match with errors.Is.
var (
	// ErrClosed: this endpoint is closed.
	ErrClosed = errors.New("call: endpoint is closed")
	// ErrOtherLife: the machine has been restarted; the life that was called is over.
	ErrOtherLife = errors.New("call: the machine has another incarnation")
	// ErrUnknownKind: the other side has no handler for this kind of call. Since a starting machine
	// does not have its handlers yet, the request is repeated nevertheless; the error comes together
	// with the context's when ctx ends. CallStarted does not repeat the request.
	ErrUnknownKind = errors.New("call: no handler for this kind of call")
	// ErrTooLong: argument or reply has more than BytesMax bytes.
	ErrTooLong = errors.New("call: message is too long")
)

// A RemoteError is the error that a handler at the other machine returned.
type RemoteError struct {
	Text string
	Err  error // an error that both sides passed to Know, or nil
}

func (e *RemoteError) Error() string { return e.Text }

func (e *RemoteError) Unwrap() error { return e.Err }
