package hosts

import (
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/rdma"
)

// hereMax bounds how many datagrams of a machine to itself may be on their way.
const hereMax = 1024

// An Inbox hands datagrams to the machine's receiver.
type Inbox struct {
	receiver atomic.Pointer[receiver]
	here     atomic.Int32 // datagrams of this machine to itself that are on their way
}

type receiver struct {
	f func(from rdma.MachineID, b []byte)
}

// Receive makes f the receiver; with nil, datagrams are lost.
func (i *Inbox) Receive(f func(from rdma.MachineID, b []byte)) {
	if f == nil {
		i.receiver.Store(nil)
		return
	}
	i.receiver.Store(&receiver{f})
}

// Deliver calls the receiver, if there is one.
func (i *Inbox) Deliver(from rdma.MachineID, b []byte) {
	if r := i.receiver.Load(); r != nil {
		r.f(from, b)
	}
}

// DeliverHere delivers a copy of a datagram of a machine to itself, on a goroutine that run starts. It is lost if many are
// on their way.
func (i *Inbox) DeliverHere(run func(func()), self rdma.MachineID, b []byte) {
	if i.here.Add(1) > hereMax {
		i.here.Add(-1)
		return
	}
	b = slices.Clone(b)
	run(func() {
		defer i.here.Add(-1)
		i.Deliver(self, b)
	})
}
