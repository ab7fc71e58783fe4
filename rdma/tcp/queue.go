package tcp

import (
	"context"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

const (
	// depth is how many operations on one machine may be pending.
	depth = 1024
	// unsentMax is how many bytes for one machine may wait for the network, beside one operation
	// of any length.
	unsentMax = 8 << 20
	// heldMax is how many bytes for one machine are held until Flush: a post that exceeds it sends
	// them. A longer batch gains nothing from waiting for more.
	heldMax = 64 << 10
	// askEvery is how many unsignalled operations may follow each other before one asks for an
	// answer.
	askEvery = 64
	// closePatience is how long Close waits for the peers to carry out what they have received.
	closePatience = time.Second
)

// A Queue implements rdma.Queue.
type Queue struct {
	nic    *NIC
	worker int
	own    *hosts.Copier // carries out operations on this machine
	bell   *hosts.Bell
	counts *rdma.Counters
	closed chan struct{} // closed when Close begins
	ended  chan struct{} // closed when Close has ended
	// unflushed are the connections to which something has been posted since the last Flush. The list
	// belongs to the goroutine that posts; Close does not touch it.
	unflushed []*conn
	mu        struct {
		lockrank.Mutex[lockrank.Later]
		conns   []*conn // indexed by machine; nil for a machine to which there was no connection
		reports []rdma.Completion
		closed  bool
	}
}

var (
	_ rdma.Queue   = (*Queue)(nil)
	_ rdma.Breaker = (*Queue)(nil)
)

func newQueue(nic *NIC, worker int, own *hosts.Copier, bell func()) *Queue {
	q := &Queue{nic: nic, worker: worker, own: own, counts: nic.counts.Worker(worker), closed: make(chan struct{}), ended: make(chan struct{})}
	q.bell = hosts.NewBell(bell, q.closed)
	return q
}

// Read implements rdma.Queue.
func (q *Queue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	return q.post(pending{frame: frame{op: rdma.OpRead, flags: asks, bytes: len(dst), key: k, off: off}, to: to, tag: tag, dst: dst}, nil)
}

// Write implements rdma.Queue.
func (q *Queue) Write(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return q.post(pending{frame: frame{op: rdma.OpWrite, bytes: len(src), key: k, off: off}, to: to, tag: tag}, src)
}

// WriteRing implements rdma.Queue.
func (q *Queue) WriteRing(to rdma.MachineID, k rdma.Key, off uint64, src []byte, tag uint64) (bool, error) {
	return q.post(pending{frame: frame{op: rdma.OpWriteRing, bytes: len(src), key: k, off: off}, to: to, tag: tag}, src)
}

// Ring implements rdma.Queue. The bell runs on a goroutine of its queue.
func (q *Queue) Ring(to rdma.MachineID) error {
	_, err := q.post(pending{frame: frame{op: rdma.OpRing}, to: to, tag: rdma.Unsignalled}, nil)
	return err
}

// post carries out an operation on this machine at once. It appends an operation on another machine
// to the frames for that machine. Flush sends them, or the post that makes them longer than heldMax.
func (q *Queue) post(p pending, src []byte) (done bool, err error) {
	if p.op != rdma.OpRing && !rdma.Aligned(p.off, p.bytes) {
		return false, p.fail(rdma.ErrRange)
	}
	if p.to == q.nic.cfg.Machine {
		if err := q.here(p, src); err != nil {
			return false, p.fail(err)
		}
		return true, nil
	}
	c, held, err := q.append(p, src)
	if err != nil {
		return false, p.fail(err)
	}
	if !c.isUnflushed {
		c.isUnflushed = true
		q.unflushed = append(q.unflushed, c)
	}
	if held > heldMax {
		c.flush()
	}
	return false, nil
}

// Flush implements rdma.Queue: it sends what is held, with one system call for each machine.
func (q *Queue) Flush() {
	for i, c := range q.unflushed {
		c.isUnflushed = false
		q.unflushed[i] = nil
		c.flush()
	}
	q.unflushed = q.unflushed[:0]
}

// here carries out an operation on this machine.
func (q *Queue) here(p pending, src []byte) error {
	q.mu.Lock()
	closed := q.mu.closed
	q.mu.Unlock()
	switch {
	case closed:
		return rdma.ErrClosed
	case p.op == rdma.OpRead:
		return q.own.Read(p.key, p.off, p.dst)
	case p.op != rdma.OpRing:
		if err := q.own.Write(p.key, p.off, src); err != nil {
			return err
		}
	}
	if p.op != rdma.OpWrite {
		q.bell.Ring()
	}
	return nil
}

// append appends an operation to the frames for its machine. held is the length of these frames now.
func (q *Queue) append(p pending, src []byte) (c *conn, held int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c, err = q.connLocked(p.to); err != nil {
		return nil, 0, err
	}
	if err = c.appendLocked(p, src); err == nil {
		q.counts.Operations.Add(1)
		q.counts.Bytes.Add(uint64(p.bytes))
	}
	return c, len(c.mu.frames), err
}

// connLocked returns the connection to a machine, and makes one if there is none. It does not
// replace a broken connection before the failures of its operations have been reported.
func (q *Queue) connLocked(to rdma.MachineID) (*conn, error) {
	if q.mu.closed {
		return nil, rdma.ErrClosed
	}
	for int(to) >= len(q.mu.conns) {
		q.mu.conns = append(q.mu.conns, nil)
	}
	c := q.mu.conns[to]
	switch {
	case c != nil && !c.mu.broken:
		return c, nil
	case c != nil && (!c.mu.over || c.mu.unreported > 0), q.nic.isCut(to):
		return nil, rdma.ErrBroken
	}
	c = newConn(q, to)
	q.mu.conns[to] = c
	return c, nil
}

// Break implements rdma.Breaker. The goroutine of the connection fails what is pending.
func (q *Queue) Break(to rdma.MachineID) { q.breakConn(to) }

// disconnect breaks the connection to a machine, if there is one, and waits until its operations
// have failed.
func (q *Queue) disconnect(to rdma.MachineID) {
	if c := q.breakConn(to); c != nil {
		<-c.ended
	}
}

// breakConn breaks the connection to a machine, and returns it; nil if there is none.
func (q *Queue) breakConn(to rdma.MachineID) (c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if int(to) < len(q.mu.conns) {
		c = q.mu.conns[to]
	}
	if c != nil {
		c.breakLocked()
	}
	return c
}

// reportLocked queues a completion, and reports whether there was none to be polled before.
func (q *Queue) reportLocked(p *pending, err error) (first bool) {
	c := rdma.Completion{Tag: p.tag, To: p.to}
	if err != nil {
		c.Err = p.fail(err)
	}
	q.mu.reports = append(q.mu.reports, c)
	return len(q.mu.reports) == 1
}

// Poll implements rdma.Queue.
func (q *Queue) Poll(cs []rdma.Completion) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(cs, q.mu.reports)
	for _, c := range cs[:n] {
		q.mu.conns[c.To].mu.unreported--
	}
	q.mu.reports = q.mu.reports[:copy(q.mu.reports, q.mu.reports[n:])]
	return n
}

// Close implements rdma.Queue. It waits until each peer has carried out what it has received, but no
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
	q.mu.Unlock()
	close(q.closed)
	q.own.End()
	patience, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	for _, c := range conns {
		if c != nil {
			c.await(patience)
		}
	}
	q.nic.removeQueue(q)
	return nil
}

// removeQueue frees the place of a worker, and stops the agents that ring its bell.
func (nic *NIC) removeQueue(q *Queue) {
	nic.mu.Lock()
	delete(nic.mu.queues, q.worker)
	agents := nic.mu.agents.Remove(func(id hosts.AgentID, _ *agent) bool { return id.Worker == q.worker })
	nic.mu.Unlock()
	hosts.StopAll(agents)
}
