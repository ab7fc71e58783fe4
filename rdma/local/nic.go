package local

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A NIC is one machine's access to a Network. It implements rdma.NIC.
type NIC struct {
	network    *Network
	machine    rdma.MachineID
	registered atomic.Pointer[registrations] // replaced, never changed
	queues     map[int]*Queue                // the queue of each worker; guarded by network.mu
	closed     bool                          // guarded by network.mu
	mailbox    mailbox
}

var _ rdma.NIC = (*NIC)(nil)

// Machine returns the name with which it joined.
func (nic *NIC) Machine() rdma.MachineID { return nic.machine }

// Costs implements rdma.NIC. The costs were measured on a processor of 2020, by the benchmarks of this
// package, of package txn and of examples/skiplist. Asynchronous mode stands in for a network, and has a network's costs:
// SOSP'15 sends a message instead of more than four READs.
func (nic *NIC) Costs() rdma.Costs {
	if nic.network.options.Async {
		return rdma.Costs{Read: time.Microsecond, Message: 4 * time.Microsecond}
	}
	return rdma.Costs{Read: 50 * time.Nanosecond, Wait: 100 * time.Nanosecond, Message: 2 * time.Microsecond}
}

// Register implements rdma.NIC.
func (nic *NIC) Register(k rdma.Key, m *nvram.Memory) error {
	nic.network.mu.Lock()
	defer nic.network.mu.Unlock()
	if nic.closed {
		return rdma.ErrClosed
	}
	old := nic.registered.Load()
	if old.lookup(k).memory != nil {
		return fmt.Errorf("%w: %#x at machine %d", rdma.ErrKeyTaken, uint64(k), nic.machine)
	}
	nic.registered.Store(old.with(registration{key: k, memory: m, bytes: m.Size()}))
	return nil
}

// Deregister implements rdma.NIC.
func (nic *NIC) Deregister(k rdma.Key) {
	nic.network.mu.Lock()
	nic.registered.Store(nic.registered.Load().without(k))
	nic.network.unlockAndSettle()
}

// Open implements rdma.NIC.
func (nic *NIC) Open(worker int, bell func()) (rdma.Queue, error) {
	nic.network.mu.Lock()
	defer nic.network.mu.Unlock()
	if nic.closed {
		return nil, rdma.ErrClosed
	}
	if nic.queues[worker] != nil {
		return nil, fmt.Errorf("%w: %d at machine %d", rdma.ErrWorkerTaken, worker, nic.machine)
	}
	if bell == nil {
		bell = func() {}
	}
	q := &Queue{nic: nic, worker: worker, bell: bell}
	nic.queues[worker] = q
	if nic.network.options.Async {
		q.later = newLater(q, nic.network.options.Depth)
	}
	return q, nil
}

// Gone implements rdma.NIC. It always returns false: no machine ends before the process that runs
// all of them.
func (nic *NIC) Gone(rdma.MachineID) bool { return false }

// Deaths implements rdma.NIC. It never calls the function; see Gone.
func (nic *NIC) Deaths(func(rdma.MachineID)) {}

// Close implements rdma.NIC.
func (nic *NIC) Close() error {
	n := nic.network
	n.mu.Lock()
	if nic.closed {
		n.mu.Unlock()
		return nil
	}
	nic.closed = true
	nic.mailbox.receiver.Store(nil)
	nic.registered.Store(&noRegistrations)
	n.breakLocked(func(c *conn) bool { return c.from.nic == nic || c.to.nic == nic })
	queues := nic.queues
	nic.queues = nil
	n.unlockAndSettle() // settles the queues of the others
	for _, q := range queues {
		q.stop()
	}
	n.mu.Lock()
	delete(n.mu.nics, nic.machine)
	n.mu.Unlock()
	return nil
}
