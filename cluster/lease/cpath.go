//go:build cgo && linux && (amd64 || arm64)

package lease

/*
#include "path.h"
#include "siphash.h"
*/
import "C"

import "unsafe"

// siphash is the function of C, for the test of its vectors: tests cannot use cgo themselves.
func siphash(key [16]byte, b []byte) (code [16]byte) {
	C.lease_siphash((*C.uint8_t)(&key[0]), unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b)), (*C.uint8_t)(&code[0]))
	return code
}

// A cPath is both ends of one direction, in C, for tests: machine 1, the sender, seals datagrams for machine 2,
// the receiver, which has handed out the keys for that. Each end's path names the other machine.
type cPath struct{ sender, receiver C.struct_lease_path }

func newCPath() *cPath {
	return &cPath{C.struct_lease_path{machine: 2}, C.struct_lease_path{machine: 1}}
}

// handOut makes the receiver hand out a key; if isTaken, the sender has got it.
func (c *cPath) handOut(key [LineKeyBytes]byte, isTaken bool) {
	k := cKey(key)
	C.lease_hand_out(&c.receiver, &k)
	if isTaken {
		c.sender.sealer, c.sender.sent = k, 0
	}
}

// seal returns a sealed datagram with a grant of the sender, whose leases last 200 ns.
func (c *cPath) seal(sent int64) []byte {
	d := C.struct_lease_datagram{message: C.struct_lease_message{from: 1, kind: grant, sent: C.int64_t(sent)}}
	C.lease_seal(&c.sender, 200, &d)
	return C.GoBytes(unsafe.Pointer(&d), C.int(unsafe.Sizeof(d)))
}

// skip makes the sender's next datagram the n-th.
func (c *cPath) skip(n uint64) { c.sender.sent = C.uint64_t(n) }

// open returns what becomes of a datagram, by the names of the verdicts.
func (c *cPath) open(b []byte) string {
	var d C.struct_lease_datagram
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&d)), unsafe.Sizeof(d)), b)
	var p *C.struct_lease_path
	switch C.lease_open(&c.receiver, 1, &d, C.size_t(len(b)), &p) {
	case C.LEASE_ADMITTED:
		return "admitted"
	case C.LEASE_GARBAGE:
		return "garbage"
	case C.LEASE_UNKNOWN_KEY:
		return "unknown key"
	case C.LEASE_FORGED:
		return "forged"
	}
	return "replayed"
}
