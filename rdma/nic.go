package rdma

import (
	"time"

	"github.com/farmsql/farmsql/nvram"
)

// A MachineID names a machine of the network.
type MachineID uint16

// A Key names a registration at its machine.
type Key uint64

// LineBytes is the largest amount that a READ copies atomically.
const LineBytes = 64

// MaxTransferBytes is the longest READ or WRITE.
const MaxTransferBytes = 1 << 30

// DatagramBytesMax is the longest datagram.
const DatagramBytesMax = 32 << 10

// Unsignalled is the tag of an operation whose success the caller does not need to learn: it yields
// a Completion only if it fails. The completion of a later operation to the same machine implies
// that it is done.
const Unsignalled = ^uint64(0)

// Costs say how much processor time operations take, at both ends together. Code that can do the same
// with READs or with a message chooses the cheaper way. Costs do not change while a NIC is open.
type Costs struct {
	// Read is the cost of a READ of one line, its post and its completion, among several that are
	// posted together.
	Read time.Duration
	// Wait is what a READ costs in addition to Read if it is waited for by itself, because what
	// to read next depends on it.
	Wait time.Duration
	// Message is the cost of a short record to a sibling worker, which is rung with it, and of the
	// reply.
	Message time.Duration
}

// ReadsPerMessage returns how many READs cost no more than one message, at least 1.
func (c Costs) ReadsPerMessage() int { return max(1, int(c.Message/max(c.Read, 1))) }

// StepsPerMessage returns how many READs that wait for each other cost no more than one message, at least 1.
func (c Costs) StepsPerMessage() int { return max(1, int(c.Message/max(c.Read+c.Wait, 1))) }

// A NIC is one machine's access to the network. It is safe for concurrent use.
type NIC interface {
	Machine() MachineID

	// Costs returns what operations of this NIC cost on this kind of network.
	Costs() Costs

	// Register lets every machine of the network read and write m under k. It fails with
	// ErrKeyTaken if k is registered, and with ErrClosed. A provider that needs shared memory (a
	// nvram.Folder's, or nvram.NewShared's) refuses other memory with ErrPrivate.
	Register(k Key, m *nvram.Memory) error

	// Deregister removes the registration of k, if there is one. When it returns, no operation
	// touches the memory any more. It waits for the copies in progress: do not call it in code for
	// which such a copy waits.
	Deregister(k Key)

	// Open makes the queue of a worker. If the worker has a queue already, it fails with
	// ErrWorkerTaken.
	//
	// The queue calls bell when a sibling's doorbell arrives (one call may stand for several that
	// rang before it began), and when a pending operation has a Completion to poll; so a worker
	// with nothing to do can sleep until bell is called. bell runs on any goroutine, maybe on the
	// ringing one inside its call of Ring or WriteRing, and several calls may run at once. It may post
	// operations, but not to queues that the ringing goroutine holds. bell may be nil. One call may
	// still be running when the queue has been closed.
	Open(worker int, bell func()) (Queue, error)

	// Datagram sends a copy of b, which has at most DatagramBytesMax bytes, to the receiver of
	// machine m. It never waits. The datagram may overtake others, and may be lost, for example if
	// the machine has no receiver or the receiver cannot keep up. Errors are only those that this
	// side detects: ErrRange if b is too long, and ErrClosed.
	Datagram(m MachineID, b []byte) error

	// Datagrams makes f the machine's receiver and replaces the earlier one; with nil, datagrams
	// that arrive are lost. f runs on any goroutine but the sender's, several calls may run at
	// once, and f must not wait. f may use b only during the call. One call may still be running when
	// the receiver has been replaced or the NIC closed, but none begins after that.
	Datagrams(f func(from MachineID, b []byte))

	// Gone reports whether machine m is known to be gone: it has been on the network, its process
	// has ended or its NIC is closed, and no process has joined under its name since. A machine that
	// is merely stopped or cannot be reached is not gone, and false does not prove that it lives.
	// Gone never waits.
	Gone(m MachineID) bool

	// Deaths makes the NIC call f when machines die, and replaces the earlier function; nil removes
	// it. A machine dies when its process ends without having closed its NIC. f is called once for
	// each death of a machine with which this one was connected, on any goroutine, and must not
	// wait; a death is not reported if the machine has already joined again. A provider whose Gone
	// is always false never calls f. One call may still be running when f has been replaced or the
	// NIC closed.
	Deaths(f func(m MachineID))

	// Close takes the machine off the network: it closes the machine's queues, removes its
	// registrations, ends its datagrams, and breaks the connections of its peers. It waits as
	// Deregister does. Closing again does nothing. After Close the machine's name is free: the
	// machine may come back with a new NIC.
	Close() error
}

// A Queue posts one worker's operations. It is not safe for concurrent use:
// the worker that owns it posts and polls under a lock of its own. Close may be
// called at any time.
//
// If an operation returns an error, it was not carried out. If it returns done, it was carried out
// before the call returned. In both cases it has no Completion. Otherwise it is pending: Poll will
// return exactly one Completion with its tag, in post order for each machine (none if the operation
// is Unsignalled and succeeds).
//
// Operations are posted in batches, and Flush ends a batch. Until then a provider may hold posts back,
// so that many of them cost one entry into the kernel, or one doorbell of a card. An operation that no
// Flush follows may never be carried out, and may never have a Completion. So code that has posted must
// call Flush, once for the whole batch, before it waits for anything and before it gives the queue to
// others. No other method flushes, neither Ring nor WriteRing nor Poll.
//
// Every error matches one of the package's sentinels: ErrClosed, ErrFull (too many operations
// pending; flush, poll and post again), ErrBroken, ErrKey, ErrRange. A Completion may have ErrBroken for a
// registration that has ended meanwhile.
type Queue interface {
	// Read copies len(dst) bytes into dst, from offset off of registration k at machine m. Both off
	// and len(dst) are multiples of 8, and len(dst) is from 8 to MaxTransferBytes. dst belongs to the
	// queue until the operation is done.
	Read(m MachineID, k Key, off uint64, dst []byte, tag uint64) (done bool, err error)

	// Write copies src to offset off of registration k at machine m. off and the length are bounded as
	// for Read. src may be reused once Write returns.
	Write(m MachineID, k Key, off uint64, src []byte, tag uint64) (done bool, err error)

	// WriteRing is Write followed by Ring as one operation (a WRITE with immediate): the bell comes
	// after the write, and if the operation fails the bell does not ring. As with Ring, do not hold a
	// mutex that the bell may need.
	WriteRing(m MachineID, k Key, off uint64, src []byte, tag uint64) (done bool, err error)

	// Ring calls the bell of the sibling worker at machine m, after every operation posted earlier
	// to that machine. Some providers run the bell on this goroutine, so do not hold a mutex that
	// the bell may need. A doorbell has no Completion. If it is lost with a broken connection, Ring
	// returns an error, or a Completion with the tag Unsignalled reports it.
	Ring(m MachineID) error

	// Flush ends a batch: every operation posted before it, to any machine, is carried out or fails
	// without another call of the queue. It keeps the order of the posts to each machine. A provider
	// may have sent or carried out some of them earlier, or all. Flush never waits, and returns no
	// error: an operation that fails has its Completion. If nothing is held back, as after Close, Flush
	// does nothing.
	Flush()

	// Poll moves completions into cs and returns their number. It never waits, and does not flush.
	Poll(cs []Completion) int

	// Close frees the worker's place for another queue. It drops pending operations without a
	// Completion; none touches any memory once Close has returned.
	Close() error
}

// A Breaker is a Queue whose operations on a silent machine stay pending until the network
// notices the silence. Operations of other queues fail at once, or never wait for the other
// machine.
type Breaker interface {
	// Break ends the connection to machine m, if there is one, because nobody wants its answers any
	// more: what is pending there fails with ErrBroken. Posts fail, too, until those failures have been
	// polled; a later one connects anew. Break never waits.
	Break(m MachineID)
}

// A Completion reports one pending operation.
type Completion struct {
	Tag uint64
	To  MachineID
	Err error // nil, or an *Error as described at Queue
}
