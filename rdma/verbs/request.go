package verbs

import "unsafe"

// A request is a work request as it is handed to C: flat, without pointers, so that a slice of them needs neither
// copying nor pinning.
type request struct {
	pair    uint64 // the queue pair's handle
	id      uint64 // comes back with the completion
	local   uint64 // address of the bytes here
	remote  uint64 // address of the bytes there
	bytes   uint32
	lkey    uint32
	rkey    uint32
	op      wireOp
	flags   uint8
	refusal uint16 // why the card has not taken the request, a number of errno; 0 if it has
}

// A wireOp is what a card does for a request. C has the same numbers.
type wireOp uint8

const (
	wireRead wireOp = iota
	wireWrite
	wireWriteRing
)

// Flags of requests. C has the same ones, but for nudging, at which it does not look.
const (
	signalled uint8 = 1 << iota // its completion is wanted
	fenced                      // READs before it are done before it begins
	inlined                     // its bytes travel with it
	nudging                     // it only makes the card look at its send queue
)

// A completion is what a card says of a request, or of a receive.
type completion struct {
	id        uint64 // the identifier of the request
	status    status
	vendor    uint32 // what the maker of the card adds to the status
	bytes     uint32 // the length of a datagram
	isReceive uint32 // 1 if a receive has been used up: by a ring, or by a datagram
}

var (
	_ = [1]struct{}{}[unsafe.Sizeof(request{})-48]
	_ = [1]struct{}{}[unsafe.Sizeof(completion{})-24]
)

// idOf joins the number of a connection and the position of a request in it, and connOf and placeOf take them apart.
func idOf(conn uint32, place uint32) uint64 { return uint64(conn)<<32 | uint64(place) }
func connOf(id uint64) uint32               { return uint32(id >> 32) }
func placeOf(id uint64) uint32              { return uint32(id) }
