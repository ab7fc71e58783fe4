package rdma

import "github.com/farmsql/farmsql/nvram"

// A MachineID names a machine of the network.
type MachineID uint16

// A Key names a registration at its machine.
type Key uint64

// LineBytes is how much a READ copies atomically at most.
const LineBytes = 64

// MaxTransferBytes is the longest READ or WRITE.
const MaxTransferBytes = 1 << 30

// DatagramBytesMax is the longest datagram.
const DatagramBytesMax = 32 << 10

// Unsignalled is the tag of an operation whose success nobody needs to hear
// of: it yields no Completion unless it fails. The completion of a later
// operation to the same machine says that it is done.
const Unsignalled = ^uint64(0)

// A NIC is one machine's access to the network. It is safe for concurrent use.
type NIC interface {
	Machine() MachineID

	// Register lets every machine of the network read and write m under k. It
	// fails with ErrKeyTaken if k is registered, ErrClosed, and, for a provider
	// that needs shared memory (a nvram.Folder's, or nvram.NewShared's), with
	// ErrPrivate for any other.
	Register(k Key, m *nvram.Memory) error

	// Deregister takes the registration back, if there is one. When it returns,
	// no operation touches the memory any more. It waits for the copies under
	// way, so it must not be called by a function that delays one.
	Deregister(k Key)

	// Open makes the queue of a worker; each worker has at most one, or Open
	// fails with ErrWorkerTaken.
	//
	// bell is called when a sibling's doorbell arrives (one call may be for
	// several that rang before it began), and when an operation that was pending
	// has a Completion to poll, so that a worker with nothing to do can sleep
	// until it is called. It runs on any goroutine, maybe the one that rings and
	// inside its call of Ring, and several at once. It may post operations to
	// queues that the caller of Ring does not hold. It may be nil. One call may
	// still be running when the queue has been closed.
	Open(worker int, bell func()) (Queue, error)

	// Datagram sends a copy of b, which has at most DatagramBytesMax bytes, to the
	// receiver of machine to. It never waits, and promises nothing: the datagram
	// may be lost, for one if nobody is there or the receiver cannot keep up, and
	// may overtake others. Only what this side knows is an error: ErrRange if b is
	// too long, and ErrClosed.
	Datagram(to MachineID, b []byte) error

	// Datagrams makes f the machine's receiver, in place of the one before; nil
	// takes it away, and what arrives then is lost. f runs on any goroutine but
	// the sender's, several at once, and does not wait. b is f's during the call
	// only. One call may still be running when the receiver has been replaced or
	// the NIC closed; none begins.
	Datagrams(f func(from MachineID, b []byte))

	// Gone reports whether machine m is known to be no more: it has been on the
	// network, its process has ended or its NIC is closed, and none has come back
	// under its name. False says nothing. Of a machine that is stopped, or cannot be
	// reached, it is false. It never waits.
	Gone(m MachineID) bool

	// Deaths makes f hear of machines that die, in place of the one before; nil
	// takes it away. A machine dies when its process ends without having closed its
	// NIC. f is called once for each death of a machine with which this one was
	// connected, on any goroutine, and does not wait; a death is not reported when the
	// machine is back already. Where Gone is always false f is never called. One call
	// may still be running when it has been replaced or the NIC closed.
	Deaths(f func(m MachineID))

	// Close takes the machine off the network: its queues close, its
	// registrations go, its datagrams end, and the connections of its peers
	// break. It waits as Deregister does. Closing again does nothing. Its name is
	// free again then: a machine comes back with a new NIC.
	Close() error
}

// A Queue posts one worker's operations. It is not safe for concurrent use:
// the worker that owns it posts and polls under a lock of its own. Close may be
// called at any time.
//
// An operation that fails at once returns an error, was not carried out, and
// has no Completion. One that returns done was carried out before the call
// returned and has no Completion either. Any other is pending: exactly one
// Completion with its tag follows through Poll, in post order for each machine
// (unless it is Unsignalled and succeeds).
//
// Every error matches one of the package's sentinels: ErrClosed, ErrFull (too
// many operations pending; poll and post again), ErrBroken, ErrKey, ErrRange.
type Queue interface {
	// Read copies len(dst) bytes at off of registration k at machine to into
	// dst. Both off and len(dst) are multiples of 8, and len(dst) is from 8 to
	// MaxTransferBytes. dst belongs to the queue until the operation is done.
	Read(to MachineID, k Key, off uint64, dst []byte, tag uint64) (done bool, err error)

	// Write copies src to off of registration k at machine to, with the same
	// demands on off and length. src may be reused once Write returns.
	Write(to MachineID, k Key, off uint64, src []byte, tag uint64) (done bool, err error)

	// Ring calls the bell of the sibling worker at machine to, after every
	// operation posted to that machine before. Provider permitting it runs the
	// bell on this goroutine: call it without a lock that the bell may want. A
	// doorbell has no Completion; one that is lost to a broken connection is
	// reported by its return value, or by a Completion with the tag Unsignalled.
	Ring(to MachineID) error

	// Poll moves completions into cs and returns how many. It never waits.
	Poll(cs []Completion) int

	// Close gives the worker's place back. Pending operations are dropped
	// without a Completion; none touches any memory once Close has returned.
	Close() error
}

// A Completion reports one pending operation.
type Completion struct {
	Tag uint64
	To  MachineID
	Err error // nil, or an *Error as described at Queue
}
