package verbs

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
)

// A status is how a card has ended a request: ibv_wc_status.
type status uint32

// The statuses that the package looks at.
const (
	statusSuccess  status = 0
	statusFlushed  status = 5  // the queue pair had failed before
	statusAccess   status = 10 // the peer's card refuses the memory
	statusRetries  status = 12 // the peer's card does not answer
	statusNotReady status = 13 // the peer has had no receive left for too long
)

// statusTexts are what ibv_wc_status_str says, by number.
var statusTexts = [...]string{
	"success", "local length error", "local QP operation error", "local EE context operation error", "local protection error",
	"Work Request Flushed Error", "memory management operation error", "bad response error", "local access error", "remote invalid request error",
	"remote access error", "remote operation error", "transport retry counter exceeded", "RNR retry counter exceeded", "local RDD violation error",
	"remote invalid RD request", "aborted error", "invalid EE context number", "invalid EE context state", "fatal error",
	"response timeout error", "general error",
}

func (s status) String() string {
	if int(s) < len(statusTexts) {
		return fmt.Sprintf("%s (%d)", statusTexts[s], uint32(s))
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// meaning says what a status means to those who run the machines.
func (s status) meaning() string {
	switch s {
	case statusAccess:
		return "the peer has ended the registration meanwhile"
	case statusRetries:
		return "the peer's card does not answer"
	case statusNotReady:
		return "the peer has not looked for rings for too long"
	}
	return ""
}

// A LinkError says why a connection to a machine is broken. It matches rdma.ErrBroken.
type LinkError struct {
	Device string
	Port   int
	Peer   rdma.MachineID
	Reason error
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("%v: device %s, port %d, to machine %d: %v", rdma.ErrBroken, e.Device, e.Port, e.Peer, e.Reason)
}

// Unwrap returns rdma.ErrBroken and the reason.
func (e *LinkError) Unwrap() []error { return []error{rdma.ErrBroken, e.Reason} }

// A StatusError says how a card has failed to carry out a request.
type StatusError struct {
	Status uint32 // a number of ibv_wc_status
	Vendor uint32 // the vendor's error, for the card's manual
}

func (e *StatusError) Error() string {
	s := status(e.Status)
	text := "verbs status " + s.String()
	if m := s.meaning(); m != "" {
		text += ": " + m
	}
	if e.Vendor != 0 {
		text += fmt.Sprintf(", vendor error %#x", e.Vendor)
	}
	return text
}

// Reasons why connections break, beside a StatusError.
var (
	errClosedByPeer = errors.New("the peer has ended the connection, or its process has ended")
	errBreak        = errors.New("broken on behalf of the caller")
	errUnpinned     = errors.New("the peer's card cannot register the memory: its log says why")
	errCut          = errors.New("cut off")
	errPortDown     = errors.New("the port is down")
	errCardGone     = errors.New("the device has failed or was removed")
	errNoAddress    = errors.New("the machine has no address")
)
