package shm

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/farmsql/farmsql/rdma"
)

// A Queue implements rdma.Queue.
type Queue struct {
	nic    *NIC
	worker int
	closed atomic.Bool // set once, under the NIC's mu
	counts *rdma.Counters
	active *atomic.Uint64
	count  uint32  // the low half of active
	conns  []*conn // indexed by machine; nil for a machine to which there was no connection
	// asleep is the connection whose other end the last Ring or WriteRing found asleep, or nil. wake is
	// futexWake, except in tests.
	asleep *conn
	wake   func(rung *atomic.Uint32)
}

var _ rdma.Queue = (*Queue)(nil)

func newQueue(nic *NIC, worker int) *Queue {
	active := nic.state.active(worker)
	return &Queue{nic: nic, worker: worker, counts: nic.counts.Worker(worker), active: active, count: uint32(active.Load()), wake: futexWake}
}

// Read implements rdma.Queue.
func (q *Queue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, _ uint64) (bool, error) {
	return q.post(rdma.OpRead, to, k, off, dst)
}

// Write implements rdma.Queue.
func (q *Queue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, _ uint64) (bool, error) {
	return q.post(rdma.OpWrite, to, k, off, src)
}

// WriteRing implements rdma.Queue.
func (q *Queue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, _ uint64) (bool, error) {
	done, err := q.post(rdma.OpWriteRing, to, k, off, src)
	q.wakeSleeper()
	return done, err
}

// Ring implements rdma.Queue. The bell runs on a goroutine of the peer.
//
// Waking the peer is not part of the operation. The wake-up usually gives the processor to the
// peer, so a process that is stopped (SIGSTOP) is often stopped there. If the wake-up were part of
// the operation, the peer's Close would wait until that process continues.
func (q *Queue) Ring(to rdma.MachineID) error {
	_, err := q.post(rdma.OpRing, to, 0, 0, nil)
	q.wakeSleeper()
	return err
}

// wakeSleeper wakes the peer that the last operation has rung, if it sleeps.
func (q *Queue) wakeSleeper() {
	if c := q.asleep; c != nil {
		q.asleep = nil
		q.counts.Wakes.Add(1)
		q.wake(low(c.rung)) // a wake-up that comes late wakes for nothing, which park allows
		runtime.KeepAlive(c)
	}
}

// Flush implements rdma.Queue: nothing is held back.
func (q *Queue) Flush() {}

// Poll implements rdma.Queue: no operation is ever pending.
func (q *Queue) Poll([]rdma.Completion) int { return 0 }

// Close implements rdma.Queue.
func (q *Queue) Close() error {
	q.nic.mu.Lock()
	wasOpen := !q.closed.Load()
	if wasOpen {
		q.nic.closeQueueLocked(q)
	}
	q.nic.mu.Unlock()
	if wasOpen {
		return q.nic.settle(0, onMachine(q.nic.machine))
	}
	return nil
}

// Preconditions that an operation may find missing. post provides them outside of the operation,
// because that takes locks and system calls.
var (
	errNoConn       = errors.New("not connected")
	errNotAttached  = errors.New("not attached")
	errUnobtainable = errors.New("lost again as soon as it was prepared")
)

// post carries out an operation. If a connection or a mapping is missing, it makes that first.
func (q *Queue) post(op rdma.Op, to rdma.MachineID, k rdma.Key, off uint64, b []byte) (done bool, err error) {
	for range 10 {
		if err = q.try(op, to, k, off, b); err == nil {
			return true, nil
		}
		q.counts.Operations.Add(^uint64(0)) // see NIC.Counts
		switch err {
		case rdma.ErrBroken: // the operation has faulted
			q.conns[to].broken.Store(true)
		case errNoConn:
			err = q.connect(to)
		case errNotAttached:
			err = guard(func() error { return q.nic.attach(q.conns[to].peer, k) })
		}
		if err != nil {
			return false, &rdma.Error{Op: op, To: to, Key: k, Offset: off, Bytes: len(b), Err: err}
		}
	}
	return false, &rdma.Error{Op: op, To: to, Key: k, Offset: off, Bytes: len(b), Err: errors.Join(rdma.ErrBroken, errUnobtainable)}
}

// connect makes a connection to a machine, in place of a former one.
func (q *Queue) connect(to rdma.MachineID) error {
	var c *conn
	err := guard(func() (err error) {
		c, err = q.nic.connect(q, to)
		return err
	})
	if err != nil {
		return err
	}
	for int(to) >= len(q.conns) {
		q.conns = append(q.conns, nil)
	}
	q.conns[to] = c
	return nil
}

// try is the fast path: nothing in it allocates, locks or calls the system. It returns errNoConn or
// errNotAttached if that precondition is missing.
func (q *Queue) try(op rdma.Op, to rdma.MachineID, k rdma.Key, off uint64, b []byte) (err error) {
	q.count++
	q.active.Store(activity(q.count, to, k))
	defer q.end(&err, debug.SetPanicOnFault(true))
	if q.closed.Load() {
		return rdma.ErrClosed
	}
	if int(to) >= len(q.conns) || q.conns[to] == nil || !q.conns[to].holds() {
		return errNoConn
	}
	c := q.conns[to]
	if op == rdma.OpRing {
		q.ring(c)
		return nil
	}
	a := c.peer.attachment(k)
	if a == nil {
		return errNotAttached
	}
	size := a.memory.Size()
	if n := uint64(len(b)); !rdma.Aligned(off, len(b)) || off > size || n > size-off {
		return rdma.ErrRange
	}
	if op == rdma.OpRead {
		a.memory.CopyOutBare(b, off)
	} else {
		rdma.StoreLines(a.memory, off, b)
	}
	runtime.KeepAlive(a) // another goroutine may have dropped the attachment meanwhile
	if op == rdma.OpWriteRing {
		q.ring(c)
	}
	return nil
}

// ring sets the bell of the other end, and notes whether it has to be woken after the operation.
func (q *Queue) ring(c *conn) {
	q.counts.Doorbells.Add(1)
	if setBell(c.rung, c.parked) {
		q.asleep = c
	}
}

// end ends an operation, and turns a fault in it into an error, as guard does.
func (q *Queue) end(err *error, panicOnFault bool) {
	faulted(recover(), err)
	debug.SetPanicOnFault(panicOnFault)
	if q.count++; q.count == 0 {
		q.counts.Operations.Add(1 << 31) // see NIC.Counts
	}
	q.active.Store(uint64(q.count))
}
