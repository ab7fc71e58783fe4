package local

import (
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/rdma"
)

// datagramsMax bounds how many datagrams may be on their way to one machine; further ones are lost,
// so that a slow receiver does not use up memory.
const datagramsMax = 1024

// A mailbox is where a NIC's datagrams arrive.
type mailbox struct {
	receiver atomic.Pointer[receiver] // nil: nobody listens, or the NIC is closed
	arriving atomic.Int32             // how many datagrams are on their way
}

type receiver struct {
	f func(from rdma.MachineID, b []byte)
}

// Datagram implements rdma.NIC.
func (nic *NIC) Datagram(to rdma.MachineID, b []byte) error {
	var err error
	if len(b) > rdma.DatagramBytesMax {
		err = rdma.ErrRange
	}
	n := nic.network
	n.mu.Lock()
	if nic.closed {
		err = rdma.ErrClosed
	}
	peer := n.mu.nics[to]
	if n.mu.cut[link(nic.machine, to)] {
		peer = nil
	}
	n.mu.Unlock()
	if err != nil {
		return &rdma.Error{Op: rdma.OpDatagram, To: to, Bytes: len(b), Err: err}
	}
	if peer != nil {
		peer.mailbox.put(nic.machine, b)
	}
	return nil
}

// Datagrams implements rdma.NIC.
func (nic *NIC) Datagrams(f func(from rdma.MachineID, b []byte)) {
	n := nic.network
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case f == nil:
		nic.mailbox.receiver.Store(nil)
	case !nic.closed:
		nic.mailbox.receiver.Store(&receiver{f})
	}
}

// put hands a copy of b to the receiver, on a goroutine of its own. The datagram is lost if there is no
// receiver or datagramsMax are on their way.
func (m *mailbox) put(from rdma.MachineID, b []byte) {
	if m.arriving.Add(1) > datagramsMax || m.receiver.Load() == nil {
		m.arriving.Add(-1)
		return
	}
	b = slices.Clone(b)
	go func() {
		defer m.arriving.Add(-1)
		if r := m.receiver.Load(); r != nil {
			r.f(from, b)
		}
	}()
}
