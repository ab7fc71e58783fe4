package local

import (
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// An operation is a posted operation that is not carried out yet.
type operation struct {
	op   rdma.Op
	to   rdma.MachineID
	key  rdma.Key
	off  uint64
	data []byte // for a write, a copy of the caller's bytes
	tag  uint64
	conn *conn
}

func (o *operation) fail(err error) *rdma.Error {
	return &rdma.Error{Op: o.op, To: o.to, Key: o.key, Offset: o.off, Bytes: len(o.data), Err: err}
}

// later is the asynchronous mode of a queue: a goroutine carries out the operations that have been
// flushed, one after the other. Nothing happens without a Flush, so that tests find code that forgets it.
type later struct {
	queue *Queue
	depth int
	ended chan struct{}
	mu    struct {
		lockrank.Mutex[lockrank.Later]
		work    sync.Cond
		posted  []operation
		flushed int // how many of posted, from the first on, have been flushed
		reports []rdma.Completion
		closed  bool
	}
}

func newLater(q *Queue, depth int) *later {
	l := &later{queue: q, depth: depth, ended: make(chan struct{})}
	l.mu.work.L = &l.mu
	go l.run()
	return l
}

// post checks an operation and queues it. Once it is flushed, run carries it out.
func (l *later) post(o operation) error {
	if o.op == rdma.OpWrite || o.op == rdma.OpWriteRing {
		o.data = slices.Clone(o.data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return o.fail(rdma.ErrClosed)
	}
	if len(l.mu.posted)+len(l.mu.reports) >= l.depth {
		return o.fail(rdma.ErrFull)
	}
	c, err := l.connToLocked(o.to)
	if err != nil {
		return o.fail(err)
	}
	if o.op != rdma.OpRing {
		if _, err := c.target(o.key, o.off, len(o.data)); err != nil {
			return o.fail(err)
		}
	}
	o.conn = c
	c.pending++
	l.mu.posted = append(l.mu.posted, o)
	return nil
}

// flush lets run carry out what has been posted.
func (l *later) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.flushed < len(l.mu.posted) {
		l.mu.flushed = len(l.mu.posted)
		l.mu.work.Signal()
	}
}

// connToLocked returns a connection to a machine, if necessary a new one. It replaces a broken
// connection only after the failures of all its operations have been reported.
func (l *later) connToLocked(to rdma.MachineID) (*conn, error) {
	conns := l.queue.conns
	if int(to) < len(conns) && conns[to] != nil && conns[to].broken.Load() && conns[to].pending > 0 {
		return nil, rdma.ErrBroken
	}
	return l.queue.connTo(to)
}

// run carries out the flushed operations until the queue is closed.
func (l *later) run() {
	defer close(l.ended)
	for {
		o, ok := l.next()
		if !ok {
			return
		}
		runtime.Gosched() // let the poster run ahead
		err := l.carryOut(&o)
		if l.report(&o, err) {
			go l.queue.bell()
		}
	}
}

// next waits for a flushed operation and returns it. The operation stays in posted, and so counts as
// pending, until report removes it.
func (l *later) next() (operation, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.mu.flushed == 0 && !l.mu.closed {
		l.mu.work.Wait()
	}
	if l.mu.closed {
		return operation{}, false
	}
	return l.mu.posted[0], true
}

// carryOut carries out a flushed operation and rings, if the operation is to ring. It returns the reason
// why the operation failed.
func (l *later) carryOut(o *operation) error {
	q := l.queue
	q.active.Store(1)
	err := o.carryOut()
	q.active.Store(0)
	if errors.Is(err, rdma.ErrKey) || errors.Is(err, rdma.ErrRange) {
		// The registration has ended since the post: the peer's card refuses the operation.
		q.nic.network.breakConn(o.conn)
		err = rdma.ErrBroken
	}
	if err == nil && (o.op == rdma.OpRing || o.op == rdma.OpWriteRing) {
		// On another goroutine: the bell may post and wait for room in a queue, and that queue's
		// own goroutine may be waiting for this one.
		go o.conn.to.bell()
	}
	return err
}

// carryOut copies between the memories. It does not ring.
func (o *operation) carryOut() error {
	if o.conn.broken.Load() {
		return rdma.ErrBroken
	}
	if o.op == rdma.OpRing {
		return nil
	}
	m, err := o.conn.target(o.key, o.off, len(o.data))
	if err != nil {
		return err
	}
	if o.op == rdma.OpRead {
		m.CopyOutBare(o.data, o.off)
	} else {
		rdma.StoreLines(m, o.off, o.data)
	}
	return nil
}

// report queues the operation's completion, and reports whether there was none to be polled before.
func (l *later) report(o *operation, err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.posted[0] = operation{} // releases its buffer
	l.mu.posted = l.mu.posted[1:]
	l.mu.flushed--
	if err == nil && o.tag == rdma.Unsignalled {
		o.conn.pending--
		return false
	}
	c := rdma.Completion{Tag: o.tag, To: o.to}
	if err != nil {
		c.Err = o.fail(err)
	}
	l.mu.reports = append(l.mu.reports, c)
	return len(l.mu.reports) == 1
}

func (l *later) poll(cs []rdma.Completion) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := copy(cs, l.mu.reports)
	for _, c := range cs[:n] {
		l.queue.conns[c.To].pending--
	}
	l.mu.reports = slices.Delete(l.mu.reports, 0, n)
	return n
}

func (l *later) stop() {
	l.mu.Lock()
	l.mu.closed = true
	l.mu.reports = nil
	l.mu.work.Signal()
	l.mu.Unlock()
	<-l.ended
}
