//go:build cgo && linux && (amd64 || arm64)

package lease

/*
#include "thread.h"
*/
import "C"

import (
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// A cCore is the C version of core, for the test that compares the two: tests
// cannot use cgo themselves.
type cCore struct{ c C.struct_lease_core }

func newCCore(self rdma.MachineID, length int64) *cCore {
	return &cCore{C.struct_lease_core{self: C.uint16_t(self), length: C.int64_t(length)}}
}

// cPeers returns the members as C values. An additional last element makes sure that the first one
// has an address, even without members.
func cPeers(members []call.Peer) []C.struct_lease_peer {
	list := make([]C.struct_lease_peer, len(members)+1)
	for i, p := range members {
		list[i] = C.struct_lease_peer{machine: C.uint16_t(p.Machine), incarnation: C.uint64_t(p.Incarnation)}
	}
	return list
}

func (c *cCore) configure(now int64, cm rdma.MachineID, members []call.Peer) {
	C.lease_core_configure(&c.c, C.int64_t(now), C.uint16_t(cm), &cPeers(members)[0], C.int(len(members)))
}

func (c *cCore) setBeat(at int64) { c.c.beat = C.int64_t(at) }

func (c *cCore) tick(now int64) (isDue bool, expired []rdma.MachineID) {
	var list [C.LEASE_MEMBERS_MAX]C.uint16_t
	var n C.int
	isDue = C.lease_core_tick(&c.c, C.int64_t(now), &list[0], &n) == 1
	for _, x := range list[:n] {
		expired = append(expired, rdma.MachineID(x))
	}
	return isDue, expired
}

func (c *cCore) message(now int64, i int) message {
	return fromC(C.lease_core_message(&c.c, C.int64_t(now), C.int(i)))
}

func fromC(m C.struct_lease_message) message {
	return message{uint8(m.kind), int64(m.sent), int64(m.echo), int64(m.length)}
}

func (c *cCore) receive(now int64, from call.Peer, m message) (reply message, isReply bool) {
	var answer C.struct_lease_message
	in := toC(m)
	isReply = C.lease_core_receive(&c.c, C.int64_t(now), cPeers([]call.Peer{from})[0], &in, &answer) == 1
	return fromC(answer), isReply
}

func (c *cCore) state(now int64) (valid, outstanding, next int64) {
	return int64(c.c.valid), int64(c.c.outstanding), int64(C.lease_core_next(&c.c, C.int64_t(now)))
}
