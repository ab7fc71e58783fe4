package local

import (
	"runtime"
	"sync/atomic"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Queue implements rdma.Queue.
type Queue struct {
	nic    *NIC
	worker int
	bell   func()
	// active is 1 while an operation uses connections, registrations or memory. Closers and
	// deregistrations wait until it is 0; see the package's doc.
	active atomic.Uint32
	conns  []*conn // indexed by machine; nil for a machine to which there was no connection
	later  *later  // asynchronous mode, or nil
}

// A conn joins two sibling workers, in the direction of from's operations.
type conn struct {
	from, to *Queue
	broken   atomic.Bool // set once, under network.mu
	pending  int         // asynchronous mode: posted and neither polled nor, if Unsignalled, carried out
}

var _ rdma.Queue = (*Queue)(nil)

// Read implements rdma.Queue.
func (q *Queue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	if q.later != nil {
		return false, q.later.post(operation{op: rdma.OpRead, to: to, key: k, off: off, data: dst, tag: tag})
	}
	q.active.Store(1)
	m, err := q.target(to, k, off, len(dst))
	if err == nil {
		m.CopyOutBare(dst, off)
	}
	q.active.Store(0)
	if err != nil {
		return false, &rdma.Error{Op: rdma.OpRead, To: to, Key: k, Offset: off, Bytes: len(dst), Err: err}
	}
	return true, nil
}

// Write implements rdma.Queue.
func (q *Queue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	if q.later != nil {
		return false, q.later.post(operation{op: rdma.OpWrite, to: to, key: k, off: off, data: src, tag: tag})
	}
	q.active.Store(1)
	m, err := q.target(to, k, off, len(src))
	if err == nil {
		rdma.StoreLines(m, off, src)
	}
	q.active.Store(0)
	if err != nil {
		return false, &rdma.Error{Op: rdma.OpWrite, To: to, Key: k, Offset: off, Bytes: len(src), Err: err}
	}
	return true, nil
}

// WriteRing implements rdma.Queue.
func (q *Queue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	if q.later != nil {
		return false, q.later.post(operation{op: rdma.OpWriteRing, to: to, key: k, off: off, data: src, tag: tag})
	}
	q.active.Store(1)
	var m *nvram.Memory
	c, err := q.connTo(to)
	if err == nil {
		m, err = c.target(k, off, len(src))
	}
	if err == nil {
		rdma.StoreLines(m, off, src)
	}
	q.active.Store(0) // before the bell, which may close or deregister
	if err != nil {
		return false, &rdma.Error{Op: rdma.OpWriteRing, To: to, Key: k, Offset: off, Bytes: len(src), Err: err}
	}
	c.to.bell()
	return true, nil
}

// Ring implements rdma.Queue: it calls the sibling's bell.
func (q *Queue) Ring(to rdma.MachineID) error {
	if q.later != nil {
		return q.later.post(operation{op: rdma.OpRing, to: to, tag: rdma.Unsignalled})
	}
	c, err := q.connTo(to)
	if err != nil {
		return &rdma.Error{Op: rdma.OpRing, To: to, Err: err}
	}
	c.to.bell()
	return nil
}

// Flush implements rdma.Queue. Only asynchronous mode holds posts back.
func (q *Queue) Flush() {
	if q.later != nil {
		q.later.flush()
	}
}

// Poll implements rdma.Queue.
func (q *Queue) Poll(cs []rdma.Completion) int {
	if q.later == nil {
		return 0
	}
	return q.later.poll(cs)
}

// Close implements rdma.Queue.
func (q *Queue) Close() error {
	n := q.nic.network
	n.mu.Lock()
	if q.nic.queues[q.worker] == q {
		delete(q.nic.queues, q.worker)
	}
	n.breakLocked(func(c *conn) bool { return c.from == q || c.to == q })
	n.unlockAndSettle()
	q.stop()
	return nil
}

// stop ends the queue's asynchronous operations and waits for the one in progress. The caller has
// broken the queue's connections, and the queue cannot make new ones.
func (q *Queue) stop() {
	if q.later != nil {
		q.later.stop()
	}
	q.settle()
}

// target checks an operation and returns the memory that it reads or writes.
func (q *Queue) target(to rdma.MachineID, k rdma.Key, off uint64, n int) (*nvram.Memory, error) {
	c, err := q.connTo(to)
	if err != nil {
		return nil, err
	}
	return c.target(k, off, n)
}

// connTo returns the connection to a machine, and makes one if there is none.
func (q *Queue) connTo(to rdma.MachineID) (*conn, error) {
	if int(to) < len(q.conns) {
		if c := q.conns[to]; c != nil && !c.broken.Load() {
			return c, nil
		}
	}
	c, err := q.nic.network.connect(q, to)
	if err != nil {
		return nil, err
	}
	for int(to) >= len(q.conns) {
		q.conns = append(q.conns, nil)
	}
	q.conns[to] = c
	return c, nil
}

func (c *conn) target(k rdma.Key, off uint64, n int) (*nvram.Memory, error) {
	r := c.to.nic.registered.Load().lookup(k)
	if r.memory == nil {
		return nil, rdma.ErrKey
	}
	if !rdma.Aligned(off, n) || off > r.bytes || uint64(n) > r.bytes-off {
		return nil, rdma.ErrRange
	}
	return r.memory, nil
}

// settle waits for the operation in progress, if there is one.
func (q *Queue) settle() {
	for q.active.Load() != 0 {
		runtime.Gosched()
	}
}
