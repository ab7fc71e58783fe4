package verbs

import (
	"errors"
	"unsafe"
)

// A card is one port of an RDMA device. The implementation over libibverbs is behind the build tag verbs; tests without a card
// have one of their own.
type card interface {
	// limits returns what the device can do.
	limits() limits
	// register lets the card read and write memory, until the region is closed.
	register(at unsafe.Pointer, bytes uint64) (region, error)
	// lane makes a worker's part of the card: a completion queue, and a receive queue with the
	// given number of entries, which all responders of the lane share.
	lane(receives int) (lane, error)
	// post makes a queue pair for datagrams with room for the given numbers of receives and
	// sends.
	post(receives, sends int) (post, error)
	// next waits for an asynchronous event. It fails once the card is closed.
	next() (event, error)
	// close closes the device. Everything of it must have been closed before.
	close() error
}

// limits are what a device and its port have and can do.
type limits struct {
	device string
	port   int
	self   address // the port's address, without the number of a queue pair
	inline int     // the longest inline WRITE
	sends  int     // the deepest send queue
	reads  int     // how many READs may be under way on one queue pair
	// forgets says that the device may forget fenced requests, so that none must be given to it.
	forgets bool
}

// An address is where a queue pair is found.
type address struct {
	pair  uint32 // the number of the queue pair
	first uint32 // the number of its first packet
	gid   [16]byte
	lid   uint16
	mtu   uint8  // the code of the MTU
	reads uint8  // how many READs it can have under way
	key   uint32 // the Q_Key of a queue pair for datagrams
}

// A region is memory that a card reads and writes.
type region interface {
	keys() (local, remote uint32)
	// close ends the registration. The card may touch the memory until close returns.
	close() error
}

// A lane is a worker's part of a card. exchange is safe for concurrent use with arm, wait and the queue pairs' methods, but not with itself.
type lane interface {
	// pair makes a reliable connected queue pair with room for the given number of sends, and
	// grows the completion queue by as many entries. A queue pair without sends is a responder:
	// its receives are the lane's.
	pair(sends int) (pair, error)
	// exchange posts requests and receives, and then takes completions. It rings one doorbell
	// for adjacent requests of a queue pair. If the card does not take a request, exchange sets
	// the refusal of that request and of those after it of the same pair.
	exchange(requests []request, receives int, done []completion) (n, doorbells int, err error)
	// arm asks for one event when the next completion comes.
	arm() error
	// wait waits for that event. It fails once the lane is interrupted.
	wait() error
	// interrupt ends wait.
	interrupt()
	// close frees all. The queue pairs must have been closed before.
	close() error
}

// A pair is a queue pair.
type pair interface {
	address() address
	handle() uint64 // names it in requests
	// connect makes it ready to answer the other one, and to send if it has sends.
	connect(to address, trafficClass int) error
	// fail makes it carry out nothing more; what is under way fails.
	fail() error
	// close frees it. When it returns, no memory is touched on its behalf.
	close() error
}

// A post sends and receives datagrams of one packet. Buffers lie in memory that the card knows by a local key. take is not
// safe for concurrent use with itself.
type post interface {
	address() address
	// route makes the way to another queue pair for datagrams.
	route(to address, trafficClass int) (route, error)
	send(r route, to address, id uint64, at unsafe.Pointer, bytes int, key uint32) error
	receive(id uint64, at unsafe.Pointer, bytes int, key uint32) error
	// take takes completions, of sends and of receives.
	take(done []completion) (n int, err error)
	// arm, wait and interrupt are as those of a lane.
	arm() error
	wait() error
	interrupt()
	close() error
}

// A route is the way to another card.
type route interface{ close() error }

// grhBytes is the room before each datagram that is received, in which the card may put a
// header.
const grhBytes = 40

// An eventKind says what has happened to a card.
type eventKind uint8

const (
	cardFailed   eventKind = iota // the device is gone, or works no more
	portDown                      // no packet gets through
	portUp                        // packets get through again
	pairFailed                    // a queue pair works no more
	laneFailed                    // a completion queue, or a shared receive queue, works no more
	receivesLow                   // a shared receive queue has fewer entries than its limit
	otherHappens                  // anything else: nothing is to be done
)

// An event is an asynchronous event of a card.
type event struct {
	kind eventKind
	text string // the name that verbs give the event
	pair uint32 // the number of the queue pair, for pairFailed
	lane lane   // the lane, for laneFailed and receivesLow, if it is known
}

// errInterrupted ends a wait.
var errInterrupted = errors.New("verbs: interrupted")
