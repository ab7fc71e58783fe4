package verbs

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

const (
	// depth is how many operations on one machine may be pending.
	depth = 1024
	// sendDepth is how many requests of one connection a card may have under way.
	sendDepth = 512
	// receiveDepth is how many rings of all machines together may come before the queue looks for them.
	receiveDepth = 4096
	// waitingMax is how many bytes for one machine may wait for room, beside one operation of any length.
	waitingMax = 8 << 20
	// stagingBytes is the memory of a connection from which WRITEs are sent and into which READs come.
	stagingBytes = 512 << 10
	// chunkBytes is how much of a long operation one request carries.
	chunkBytes = 64 << 10
	// closePatience is how long Close waits for the peers to carry out what has been flushed.
	closePatience = time.Second
)

// A Queue implements rdma.Queue.
type Queue struct {
	nic     *NIC
	worker  int
	lane    lane
	own     *hosts.Copier // carries out operations on this machine
	bell    *hosts.Bell
	counts  *rdma.Counters
	closed  chan struct{} // closed when Close begins
	ended   chan struct{} // closed when Close has ended
	torn    chan struct{} // closed when no connection uses the lane any more
	watched chan struct{} // closed when watch has ended, and the lane is closed
	kept    error         // the error of closing the lane, once watched is closed
	// answering counts the agents that have a queue pair of the lane, or are about to. They join it with the NIC's
	// mu held, while the NIC has the queue.
	answering sync.WaitGroup
	// unflushed are the connections to which something has been posted since the last Flush. The list
	// belongs to the goroutine that posts; Close does not touch it.
	unflushed []*conn
	mu        struct {
		lockrank.Mutex[lockrank.Later]
		conns    []*conn          // indexed by machine; nil for a machine to which there was no connection
		live     map[uint32]*conn // the connections that a completion may be for, by serial
		serial   uint32           // the serial of the latest connection
		ready    []*conn          // the connections that have requests for the card
		requests []request        // the requests that are handed to the card next
		done     [64]completion
		receives receives
		reports  []rdma.Completion
		polls    uint64 // how often Poll has been called
		progress uint64 // completions that have been taken
		nudges   uint64 // how often a card has been nudged
		closed   bool
		gone     bool // the lane is closed
	}
}

var (
	_ rdma.Queue   = (*Queue)(nil)
	_ rdma.Breaker = (*Queue)(nil)
)

func newQueue(nic *NIC, worker int, bell func()) (*Queue, error) {
	l, err := nic.card.lane(nic.cfg.receives)
	if err != nil {
		return nil, err
	}
	q := &Queue{
		nic: nic, worker: worker, lane: l, own: nic.memories.Copier(), counts: nic.counts.Worker(worker),
		closed: make(chan struct{}), ended: make(chan struct{}), watched: make(chan struct{}), torn: make(chan struct{}),
	}
	q.mu.live = make(map[uint32]*conn)
	q.mu.receives.depth = nic.cfg.receives
	q.mu.Lock()
	q.exchangeLocked() // posts the receives
	q.mu.Unlock()
	q.bell = hosts.NewBell(bell, q.closed)
	nic.running.Go(q.watch)
	return q, nil
}

// Read implements rdma.Queue.
func (q *Queue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	return q.post(operation{op: rdma.OpRead, to: to, key: k, off: off, bytes: len(dst), tag: tag, dst: dst}, nil)
}

// Write implements rdma.Queue.
func (q *Queue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return q.post(operation{op: rdma.OpWrite, to: to, key: k, off: off, bytes: len(src), tag: tag}, src)
}

// WriteRing implements rdma.Queue.
func (q *Queue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return q.post(operation{op: rdma.OpWriteRing, to: to, key: k, off: off, bytes: len(src), tag: tag}, src)
}

// Ring implements rdma.Queue. The bell runs on a goroutine of its queue.
func (q *Queue) Ring(to rdma.MachineID) error {
	_, err := q.post(operation{op: rdma.OpRing, to: to, tag: rdma.Unsignalled}, nil)
	return err
}

// post carries out an operation on this machine at once. One on another machine becomes requests, which Flush
// hands to the card, or waits for room, for the key, or for the connection.
func (q *Queue) post(o operation, src []byte) (done bool, err error) {
	if o.op != rdma.OpRing && !rdma.Aligned(o.off, o.bytes) {
		return false, o.fail(rdma.ErrRange)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed {
		return false, o.fail(rdma.ErrClosed)
	}
	if o.to == q.nic.cfg.Machine {
		if err := q.here(o, src); err != nil {
			return false, o.fail(err)
		}
		return true, nil
	}
	c, err := q.connLocked(o.to)
	if err == nil {
		err = c.acceptLocked(o, src)
	}
	if err != nil {
		return false, o.fail(err)
	}
	q.counts.Operations.Add(1)
	if !c.isUnflushed {
		c.isUnflushed = true
		q.unflushed = append(q.unflushed, c)
	}
	return false, nil
}

// here carries out an operation on this machine.
func (q *Queue) here(o operation, src []byte) error {
	switch o.op {
	case rdma.OpRead:
		return q.own.Read(o.key, o.off, o.dst)
	case rdma.OpWrite, rdma.OpWriteRing:
		if err := q.own.Write(o.key, o.off, src); err != nil {
			return err
		}
	}
	if o.op != rdma.OpWrite {
		q.bell.Ring()
	}
	return nil
}

// Flush implements rdma.Queue: it hands all requests to the card, with one call and one doorbell for each machine, and takes
// completions with the same call.
func (q *Queue) Flush() {
	q.mu.Lock()
	for i, c := range q.unflushed {
		c.isUnflushed = false
		q.unflushed[i] = nil
		c.endBatchLocked()
	}
	q.unflushed = q.unflushed[:0]
	isNews := false
	if len(q.mu.ready) > 0 {
		isNews = q.exchangeLocked()
	}
	q.mu.Unlock()
	if isNews {
		q.bell.Ring()
	}
}

// Poll implements rdma.Queue.
func (q *Queue) Poll(cs []rdma.Completion) int {
	q.mu.Lock()
	q.mu.polls++
	before := q.mu.receives.used
	if len(q.mu.reports) < len(cs) && !q.mu.closed {
		q.exchangeLocked()
	}
	isRung := q.mu.receives.used != before
	n := copy(cs, q.mu.reports)
	for _, c := range cs[:n] {
		q.mu.conns[c.To].mu.unreported--
	}
	q.mu.reports = q.mu.reports[:copy(q.mu.reports, q.mu.reports[n:])]
	q.mu.Unlock()
	if isRung { // for completions no bell is needed: the worker polls
		q.bell.Ring()
	}
	return n
}

// exchangeLocked hands requests and receives to the card and takes completions, until there are none. It reports whether
// the bell has to ring: somebody has rung, or there are the first completions to poll.
func (q *Queue) exchangeLocked() (isNews bool) {
	if q.mu.gone {
		return false
	}
	reports, used := len(q.mu.reports), q.mu.receives.used
	for more := true; more; {
		q.mu.requests = q.mu.requests[:0]
		for i, c := range q.mu.ready {
			q.mu.requests = append(q.mu.requests, c.mu.batch...)
			c.mu.batch, c.mu.isReady, c.mu.handed, c.mu.given = c.mu.batch[:0], false, c.mu.flow.lastSignal, c.mu.flow.issued
			c.watchLocked()
			q.mu.ready[i] = nil
		}
		q.mu.ready = q.mu.ready[:0]
		n, doorbells, err := q.lane.exchange(q.mu.requests, q.mu.receives.missing(), q.mu.done[:])
		q.countLocked(doorbells)
		if err != nil {
			q.breakAllLocked(err)
		}
		q.refusedLocked()
		for _, d := range q.mu.done[:n] {
			q.completedLocked(d)
		}
		q.mu.progress += uint64(n)
		more = err == nil && (n == len(q.mu.done) || len(q.mu.ready) > 0 || q.mu.receives.isLow())
	}
	return (reports == 0 && len(q.mu.reports) > 0) || q.mu.receives.used != used
}

// refusedLocked breaks the connections whose requests the card has not taken.
func (q *Queue) refusedLocked() {
	for i := range q.mu.requests {
		if r := &q.mu.requests[i]; r.refusal != 0 {
			if c := q.mu.live[connOf(r.id)]; c != nil {
				c.breakLocked(fmt.Errorf("the card has not taken a request: %w", errnoOf(r.refusal)))
			}
		}
	}
}

// completedLocked takes one completion.
func (q *Queue) completedLocked(d completion) {
	if d.isReceive != 0 {
		q.mu.receives.use(1)
		return
	}
	c := q.mu.live[connOf(d.id)]
	if c == nil {
		return // the connection of the request has ended
	}
	if d.status != statusSuccess {
		c.breakLocked(&StatusError{Status: uint32(d.status), Vendor: d.vendor})
		return
	}
	if c.mu.flow.finish(c.mu.flow.place(placeOf(d.id))) {
		c.mu.progress++
		c.advanceLocked()
		c.issueWaitingLocked()
	}
}

// connLocked returns the connection to a machine, and makes one if there is none. It does not
// replace a broken connection before the failures of its operations have been reported.
func (q *Queue) connLocked(to rdma.MachineID) (*conn, error) {
	for int(to) >= len(q.mu.conns) {
		q.mu.conns = append(q.mu.conns, nil)
	}
	c := q.mu.conns[to]
	switch {
	case c != nil && !c.mu.broken:
		return c, nil
	case c != nil && (!c.mu.over || c.mu.unreported > 0):
		return nil, c.mu.reason
	}
	if err := q.nic.mayConnect(to); err != nil {
		return nil, q.nic.linkError(to, err)
	}
	c = q.newConnLocked(to)
	q.mu.conns[to] = c
	return c, nil
}

// Break implements rdma.Breaker. The goroutine of the connection fails what is pending.
func (q *Queue) Break(to rdma.MachineID) { q.breakConn(to, errBreak) }

// disconnect breaks the connection to a machine, if there is one, and waits until its operations
// have failed.
func (q *Queue) disconnect(to rdma.MachineID, reason error) {
	if c := q.breakConn(to, reason); c != nil {
		<-c.ended
	}
}

// breakConn breaks the connection to a machine, and returns it; nil if there is none.
func (q *Queue) breakConn(to rdma.MachineID, reason error) (c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if int(to) < len(q.mu.conns) {
		c = q.mu.conns[to]
	}
	if c != nil {
		c.breakLocked(reason)
	}
	return c
}

// breakAll breaks all connections.
func (q *Queue) breakAll(reason error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.breakAllLocked(reason)
}

func (q *Queue) breakAllLocked(reason error) {
	for _, c := range q.mu.conns {
		if c != nil {
			c.breakLocked(reason)
		}
	}
}

// Close implements rdma.Queue. It waits until each peer has carried out what has been flushed, but no
// longer than closePatience.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.mu.closed {
		q.mu.Unlock()
		<-q.ended
		return nil
	}
	defer close(q.ended)
	q.mu.closed = true
	q.mu.reports = nil
	conns := q.mu.conns
	for _, c := range conns {
		if c != nil {
			c.finishLocked()
		}
	}
	if len(q.mu.ready) > 0 {
		q.exchangeLocked()
	}
	q.mu.Unlock()
	close(q.closed)
	q.own.End()
	patience := time.Now().Add(closePatience)
	for _, c := range conns {
		if c != nil {
			c.await(patience)
		}
	}
	q.nic.removeQueue(q)
	q.answering.Wait() // waits also for agents that others have removed from the NIC's table
	close(q.torn)
	q.lane.interrupt() // ends watch
	<-q.watched
	return q.kept
}

// closeLane frees the lane. The goroutine of watch calls it: NIC.Close waits for that goroutine
// before it closes the card, even if this queue is no longer in its table.
func (q *Queue) closeLane() error {
	q.mu.Lock()
	q.mu.gone = true
	q.mu.Unlock()
	if err := q.lane.close(); err != nil && !errors.Is(err, errCardGone) {
		return fmt.Errorf("verbs: closing the queue of worker %d: %w", q.worker, err)
	}
	return nil
}
