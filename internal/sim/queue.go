package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// queue is the rdma.Queue of one worker: its connections to the workers of the same number.
type queue struct {
	nic     *nic
	worker  int
	bell    func()
	conns   []*conn // connections by machine; nil where there was never one
	reports []report
	belled  bool // a call of the bell is pending
	closed  bool
	// unflushed are the operations posted since the last Flush.
	unflushed []*operation
	// incoming are the connections of peers that end here.
	incoming []*conn
}

// A conn connects two sibling workers.
type conn struct {
	from, to *queue // of the worker that posts the operations, and of its sibling
	broken   bool
	pending  int          // number of operations posted and not polled
	flying   []*operation // operations posted and not reported, in order
	// appliedAt and answeredAt are the times at which the latest operation takes
	// effect, and at which its completion arrives.
	appliedAt, answeredAt time.Duration
}

// An operation is a READ, a WRITE or a ring that has been posted and has not been completed.
type operation struct {
	op   rdma.Op
	conn *conn
	key  rdma.Key
	off  uint64
	data []byte // for a WRITE, a copy of the bytes to write
	tag  uint64
	// isFlushed says that Flush has ended the operation's batch. It must be set by the time at which
	// the operation takes effect, which is after the present turn.
	isFlushed bool
}

// A report is a completion that waits to be polled.
type report struct {
	rdma.Completion
	conn *conn
}

const (
	// breakSpan is the time after which a card gives up a connection.
	breakSpan = time.Millisecond
	// torn bounds the time between the lines of one operation; in rare cases tornFar
	// does.
	torn    = time.Microsecond
	tornFar = 50 * time.Microsecond
	// packetsOfEach is how many packets of an operation each of the two cards works on: the request and the answer.
	packetsOfEach = 2
)

func (o *operation) fail(to rdma.MachineID, err error) error {
	return &rdma.Error{Op: o.op, To: to, Key: o.key, Offset: o.off, Bytes: len(o.data), Err: err}
}

// Read implements rdma.Queue.
func (q *queue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	return false, q.post(to, &operation{op: rdma.OpRead, key: k, off: off, data: dst, tag: tag})
}

// Write implements rdma.Queue.
func (q *queue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return false, q.post(to, &operation{op: rdma.OpWrite, key: k, off: off, data: slices.Clone(src), tag: tag})
}

// WriteRing implements rdma.Queue.
func (q *queue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return false, q.post(to, &operation{op: rdma.OpWriteRing, key: k, off: off, data: slices.Clone(src), tag: tag})
}

// Ring implements rdma.Queue.
func (q *queue) Ring(to rdma.MachineID) error {
	return q.post(to, &operation{op: rdma.OpRing, tag: rdma.Unsignalled})
}

// post puts an operation on the way. Operations of a dead process have no effect.
func (q *queue) post(to rdma.MachineID, o *operation) error {
	n := q.nic
	switch {
	case n.process.dead:
		return nil
	case q.closed || n.closed:
		return o.fail(to, rdma.ErrClosed)
	}
	c, err := q.connTo(to)
	if err == nil && o.op != rdma.OpRing {
		_, err = c.to.nic.target(o.key, o.off, len(o.data))
	}
	if err != nil {
		return o.fail(to, err)
	}
	o.conn = c
	if o.op != rdma.OpRing {
		n.process.Work(n.process.world.options.Costs.Operation)
	}
	c.pending++
	c.flying = append(c.flying, o)
	q.unflushed = append(q.unflushed, o)
	c.schedule(o)
	return nil
}

// Flush implements rdma.Queue. No time passes in a turn, so operations are under way as soon as
// they are posted. But a process that waits before it has flushed them has failed.
func (q *queue) Flush() {
	for _, o := range q.unflushed {
		o.isFlushed = true
	}
	q.unflushed = q.unflushed[:0]
}

// unflushedError says that a process may wait for an operation for ever.
func (c *conn) unflushedError(o *operation) error {
	return fmt.Errorf("sim: machine %d waits, and has not flushed %v to machine %d, key %#x, offset %d", c.from.nic.id, o.op, c.to.nic.id, uint64(o.key), o.off)
}

// connTo returns the connection to a machine, and creates it if necessary. It replaces a broken
// connection only after all its failures have been polled.
func (q *queue) connTo(to rdma.MachineID) (*conn, error) {
	if int(to) < len(q.conns) {
		switch c := q.conns[to]; {
		case c == nil || (c.broken && c.pending == 0): // replaced below
		case c.broken:
			return nil, rdma.ErrBroken
		default:
			return c, nil
		}
	}
	w := q.nic.process.world
	peer := w.network.nics[to]
	if peer == nil || q.worker >= len(peer.queues) || peer.queues[q.worker] == nil || !w.isUp(q.nic.id, to) || !w.isUp(to, q.nic.id) {
		return nil, rdma.ErrBroken
	}
	c := &conn{from: q, to: peer.queues[q.worker]}
	c.to.incoming = append(slices.DeleteFunc(c.to.incoming, func(c *conn) bool { return c.broken }), c)
	for int(to) >= len(q.conns) {
		q.conns = append(q.conns, nil)
	}
	q.conns[to] = c
	return c, nil
}

// schedule draws when the operation takes effect, perhaps in several parts, and when
// its completion arrives.
func (c *conn) schedule(o *operation) {
	w := c.from.nic.process.world
	from, to := c.from.nic.id, c.to.nic.id
	w.mix(uint64(o.op)<<32|uint64(from)<<16|uint64(to), uint64(o.key), o.off, uint64(len(o.data)))
	out, back := len(o.data), 0
	if o.op == rdma.OpRead {
		out, back = back, out
	}
	c.appliedAt = max(c.appliedAt+1, c.from.nic.sent(out, packetsOfEach)+w.delay(from, to))
	at := 0
	for _, end := range w.cutUp(o) {
		begin := at
		if begin > 0 {
			apart := torn
			if w.rng.IntN(16) == 0 {
				apart = tornFar
			}
			c.appliedAt += 1 + w.upTo(apart)
		}
		w.at(c.appliedAt, func() { c.apply(o, begin, end) })
		at = end
	}
	// The other card sends the answer after the bytes that it is sending already.
	waits := c.to.nic.sent(back, packetsOfEach) - w.time()
	c.answeredAt = max(c.answeredAt+1, c.appliedAt+waits+w.delay(to, from))
	w.at(c.answeredAt, func() { c.answer(o) })
}

// cutUp draws at which lines an operation is cut into parts, and returns the
// ends of the parts.
func (w *World) cutUp(o *operation) []int {
	n := len(o.data)
	first := rdma.LineBytes - int(o.off%rdma.LineBytes)        // up to the first line's end
	lines := (n - first + rdma.LineBytes - 1) / rdma.LineBytes // those after the first
	if o.op == rdma.OpRing || lines < 1 || w.options.Steady || w.rng.IntN(2) == 0 {
		return []int{n}
	}
	ends := []int{first + w.rng.IntN(lines)*rdma.LineBytes}
	if w.rng.IntN(4) == 0 {
		ends = append(ends, first+w.rng.IntN(lines)*rdma.LineBytes)
		slices.Sort(ends)
	}
	return slices.Compact(append(ends, n))
}

// apply executes the bytes from begin to end of the operation.
func (c *conn) apply(o *operation, begin, end int) {
	w := c.from.nic.process.world
	from, to := c.from.nic, c.to.nic
	switch {
	case c.broken || from.silent():
		return
	case !o.isFlushed && !from.process.dead:
		w.failure = cmp.Or(w.failure, c.unflushedError(o))
		return
	case !w.isUp(from.id, to.id):
		c.giveUp()
		return
	case o.op == rdma.OpRing:
		c.ring()
		return
	}
	m, err := to.target(o.key, o.off, len(o.data))
	if err != nil { // the registration has ended since the post: the card refuses, which ends the connection
		c.giveUp()
		return
	}
	w.tell("%v %d to %d, worker %d: key %#x, %d to %d of %d bytes at %d", o.op, from.id, to.id, c.to.worker, uint64(o.key), begin, end, len(o.data), o.off)
	if o.op == rdma.OpRead {
		m.CopyOut(o.data[begin:end], o.off+uint64(begin))
	} else {
		rdma.StoreLines(m, o.off+uint64(begin), o.data[begin:end])
	}
	if o.op == rdma.OpWriteRing && end == len(o.data) {
		c.ring()
	}
}

// ring rings the bell at the other end.
func (c *conn) ring() {
	w, to := c.from.nic.process.world, c.to
	w.tell("ring from %d to %d, worker %d", c.from.nic.id, to.nic.id, to.worker)
	w.start(to.nic.process, 0, to.bell, false)
}

// answer completes the operation, unless the acknowledgement is lost.
func (c *conn) answer(o *operation) {
	w := c.from.nic.process.world
	switch {
	case c.broken || c.from.closed || c.from.nic.process.dead:
		return
	case !w.isUp(c.to.nic.id, c.from.nic.id):
		c.giveUp()
		return
	}
	c.flying = c.flying[1:]
	c.report(o, nil)
}

// report queues the completion of an operation, and rings the bell a little later.
func (c *conn) report(o *operation, err error) {
	if o.tag == rdma.Unsignalled && err == nil {
		c.pending--
		return
	}
	q := c.from
	q.reports = append(q.reports, report{rdma.Completion{Tag: o.tag, To: c.to.nic.id, Err: err}, c})
	if !q.belled {
		q.belled = true
		w := q.nic.process.world
		wake := yieldMin
		if !w.options.Steady {
			wake += w.upTo(wakeSpan)
		}
		w.start(q.nic.process, wake, func() {
			q.belled = false
			q.bell()
		}, false)
	}
}

// giveUp breaks the connection: after a while, all pending operations are reported as
// failed.
func (c *conn) giveUp() {
	if c.broken {
		return
	}
	c.broken = true
	w := c.from.nic.process.world
	w.after(w.upTo(breakSpan), func() {
		if c.from.closed || c.from.nic.process.dead {
			return
		}
		for _, o := range c.flying {
			c.report(o, o.fail(c.to.nic.id, rdma.ErrBroken))
		}
		c.flying = nil
	})
}

// breakPeers breaks the connections that end here.
func (q *queue) breakPeers() {
	for _, c := range q.incoming {
		c.giveUp()
	}
	q.incoming = nil
}

// Poll implements rdma.Queue.
func (q *queue) Poll(cs []rdma.Completion) int {
	n := min(len(cs), len(q.reports))
	for i, r := range q.reports[:n] {
		cs[i] = r.Completion
		r.conn.pending--
	}
	q.reports = q.reports[n:]
	return n
}

// Close implements rdma.Queue.
func (q *queue) Close() error {
	if !q.closed && !q.nic.closed {
		q.close()
		q.breakPeers()
		q.nic.queues[q.worker] = nil
	}
	return nil
}

// close drops the queue's pending operations.
func (q *queue) close() {
	q.closed, q.reports = true, nil
	for _, c := range q.conns {
		if c != nil {
			c.broken, c.flying = true, nil
		}
	}
}
