package rdma

import (
	"errors"
	"fmt"
)

// Reasons why an operation fails. Match with errors.Is.
var (
	// ErrClosed: this side's NIC or queue is closed.
	ErrClosed = errors.New("rdma: closed")
	// ErrFull: the queue has as many operations pending as it can hold.
	ErrFull = errors.New("rdma: too many operations pending")
	// ErrBroken: the connection broke, or cannot be made, because the peer is gone, cut off, or has
	// no such worker. An operation that was pending may or may not have taken effect; an operation
	// that was just posted has not.
	ErrBroken = errors.New("rdma: connection broken")
	// ErrKey: the peer has no registration of that name.
	ErrKey = errors.New("rdma: no such registration")
	// ErrRange: offset or length is misaligned or outside the registration; a
	// datagram is too long.
	ErrRange = errors.New("rdma: outside the registration or misaligned")
	// ErrPrivate: the memory cannot be registered, because the provider needs shared memory.
	ErrPrivate = errors.New("rdma: memory is private to the process")
	// ErrKeyTaken: a registration of that name exists.
	ErrKeyTaken = errors.New("rdma: key is already registered")
	// ErrWorkerTaken: the worker has a queue already.
	ErrWorkerTaken = errors.New("rdma: worker has a queue already")
	// ErrMachineTaken: a machine of that name is on the network.
	ErrMachineTaken = errors.New("rdma: machine is on the network already")
)

// An Op is a kind of operation.
type Op uint8

const (
	OpRead Op = iota
	OpWrite
	OpRing
	OpWriteRing
	OpDatagram
)

func (o Op) String() string {
	switch o {
	case OpRead:
		return "read"
	case OpWrite:
		return "write"
	case OpRing:
		return "ring"
	case OpWriteRing:
		return "write and ring"
	case OpDatagram:
		return "datagram"
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// An Error says which operation failed; Err is one of the sentinels above.
type Error struct {
	Op     Op
	To     MachineID
	Key    Key
	Offset uint64
	Bytes  int
	Err    error
}

func (e *Error) Error() string {
	switch e.Op {
	case OpRing:
		return fmt.Sprintf("%v: ring machine %d", e.Err, e.To)
	case OpDatagram:
		return fmt.Sprintf("%v: datagram of %d bytes to machine %d", e.Err, e.Bytes, e.To)
	}
	return fmt.Sprintf("%v: %v %d bytes at machine %d, key %#x, offset %d", e.Err, e.Op, e.Bytes, e.To, uint64(e.Key), e.Offset)
}

func (e *Error) Unwrap() error { return e.Err }
