package local

import (
	"runtime"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// depthDefault is the number of operations that an asynchronous queue holds.
const depthDefault = 1024

// Options of a network. The zero value is the fast mode.
type Options struct {
	// Async makes every operation pending: a goroutine of the queue carries it out once it is flushed,
	// and Poll reports it.
	Async bool
	// Depth is the number of operations that a queue may have pending with Async before posts fail
	// with rdma.ErrFull; 0 means 1024.
	Depth int
}

// A Network joins NICs of one process. It is safe for concurrent use.
type Network struct {
	options Options
	mu      struct {
		lockrank.Mutex[lockrank.Leaf]
		nics  map[rdma.MachineID]*NIC
		conns map[*conn]struct{} // the connections that are not broken
		cut   map[[2]rdma.MachineID]bool
	}
}

// NewNetwork returns a network without machines.
func NewNetwork(o Options) *Network {
	if o.Depth <= 0 {
		o.Depth = depthDefault
	}
	n := &Network{options: o}
	n.mu.nics = make(map[rdma.MachineID]*NIC)
	n.mu.conns = make(map[*conn]struct{})
	n.mu.cut = make(map[[2]rdma.MachineID]bool)
	return n
}

// Join adds a machine. It fails with rdma.ErrMachineTaken while another NIC has that name; closing
// that NIC frees the name.
func (n *Network) Join(m rdma.MachineID) (*NIC, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.nics[m] != nil {
		return nil, rdma.ErrMachineTaken
	}
	nic := &NIC{network: n, machine: m, queues: make(map[int]*Queue)}
	nic.registered.Store(&noRegistrations)
	n.mu.nics[m] = nic
	return nic, nil
}

// Cut breaks the connections between two machines and prevents new ones. When Cut has returned, no
// operation between them takes effect.
func (n *Network) Cut(a, b rdma.MachineID) {
	n.mu.Lock()
	n.mu.cut[link(a, b)] = true
	n.breakLocked(func(c *conn) bool { return link(c.from.nic.machine, c.to.nic.machine) == link(a, b) })
	n.unlockAndSettle()
}

// Isolate cuts m from every other machine that is on the network now.
func (n *Network) Isolate(m rdma.MachineID) {
	n.mu.Lock()
	for other := range n.mu.nics {
		if other != m {
			n.mu.cut[link(m, other)] = true
		}
	}
	n.breakLocked(func(c *conn) bool { return n.mu.cut[link(c.from.nic.machine, c.to.nic.machine)] })
	n.unlockAndSettle()
}

// Mend lets two machines connect again.
func (n *Network) Mend(a, b rdma.MachineID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.cut, link(a, b))
}

// link names the cable between two machines; their order does not matter.
func link(a, b rdma.MachineID) [2]rdma.MachineID { return [2]rdma.MachineID{min(a, b), max(a, b)} }

// connect joins q to its sibling at another machine. It fails with ErrClosed if q is closed, and with
// ErrBroken if there is no sibling or the cable is cut.
func (n *Network) connect(q *Queue, to rdma.MachineID) (*conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.nic.queues[q.worker] != q {
		return nil, rdma.ErrClosed
	}
	peer := n.mu.nics[to]
	if peer == nil || n.mu.cut[link(q.nic.machine, to)] || peer.queues[q.worker] == nil {
		return nil, rdma.ErrBroken
	}
	c := &conn{from: q, to: peer.queues[q.worker]}
	n.mu.conns[c] = struct{}{}
	return c, nil
}

// breakConn breaks one connection.
func (n *Network) breakConn(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breakLocked(func(other *conn) bool { return other == c })
}

// breakLocked breaks the connections that match.
func (n *Network) breakLocked(match func(*conn) bool) {
	for c := range n.mu.conns {
		if match(c) {
			c.broken.Store(true)
			delete(n.mu.conns, c)
		}
	}
}

// unlockAndSettle unlocks mu and waits until every operation that began before has ended. Callers
// first unpublish what they remove, so that no later operation can find it.
func (n *Network) unlockAndSettle() {
	var queues []*Queue
	for _, nic := range n.mu.nics {
		for _, q := range nic.queues {
			queues = append(queues, q)
		}
	}
	n.mu.Unlock()
	for _, q := range queues {
		for q.active.Load() != 0 {
			runtime.Gosched()
		}
	}
}
