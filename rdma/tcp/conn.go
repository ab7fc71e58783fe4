package tcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// pending is an operation that has been posted and is not done.
type pending struct {
	frame
	to  rdma.MachineID
	tag uint64
	dst []byte // where the bytes of a READ go
}

func (p *pending) fail(err error) *rdma.Error {
	return &rdma.Error{Op: p.op, To: p.to, Key: p.key, Offset: p.off, Bytes: p.bytes, Err: err}
}

// A conn joins a queue to the agent of its sibling. Its goroutine, run, connects, reads answers,
// and at the end fails what is pending.
type conn struct {
	q      *Queue
	to     rdma.MachineID
	cancel context.CancelFunc // ends run
	ended  chan struct{}      // closed when run has ended
	// isUnflushed says that the connection is in its queue's unflushed. Like that list, it belongs to
	// the goroutine that posts.
	isUnflushed bool

	// sending lets one goroutine send at a time: the worker's, or run once it has connected.
	sending lockrank.Mutex[lockrank.Sending]
	spare   []byte // the second of two buffers for frames

	mu struct { // the queue's mu guards it
		frames     []byte // not sent yet
		pending    []pending
		room       []pending // the memory of pending once that is empty
		answered   uint64    // the number of operations answered, which is the number of pending[0]
		unasked    int       // operations since the last one that asks
		link       *link     // nil before run has connected
		broken     bool      // nothing more is posted
		over       bool      // all that was pending has failed
		unreported int       // completions to come from Poll
		watched    bool      // watch will look at what is pending
		asked      uint64    // one more than the number of the last operation that asks for an answer
	}
}

// A link is a connection that is open.
type link struct {
	outbox *outbox
	stream net.Conn // the outbox, or TLS over it
}

func newConn(q *Queue, to rdma.MachineID) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &conn{q: q, to: to, cancel: cancel, ended: make(chan struct{})}
	go c.run(ctx)
	return c
}

// appendLocked appends an operation to what will be sent. It fails with rdma.ErrFull if too many operations
// are pending or too many bytes are unsent. The operation asks for an answer if it is signalled, or if
// askEvery operations have not asked.
func (c *conn) appendLocked(p pending, src []byte) error {
	unsent := len(c.mu.frames)
	if c.mu.link != nil {
		unsent += c.mu.link.outbox.unsent()
	}
	if len(c.mu.pending) >= depth || unsent > unsentMax {
		return rdma.ErrFull
	}
	if c.mu.unasked++; p.tag != rdma.Unsignalled || c.mu.unasked >= askEvery {
		p.flags |= asks
		c.mu.unasked = 0
	}
	c.mu.frames = append(p.frame.append(c.mu.frames), src...)
	c.pendLocked(p)
	return nil
}

// watchLocked starts a timer that calls watch after silenceMax, unless one is running.
func (c *conn) watchLocked() {
	if !c.mu.watched {
		c.mu.watched = true
		asked, moved := c.mu.asked, c.movedLocked()
		time.AfterFunc(c.q.nic.cfg.silence, func() { c.watch(asked, moved) })
	}
}

// movedLocked returns how many bytes have gone over the connection.
func (c *conn) movedLocked() uint64 {
	if c.mu.link == nil {
		return 0
	}
	return c.mu.link.outbox.moved.Load()
}

// watch breaks the connection if an operation that asks for an answer has been pending since the timer
// was started, and no byte has gone over the connection since. The other process may be stopped or
// stuck while its kernel still acknowledges everything. asked and moved have the values from when the
// timer was started. If the last pending operation does not ask for an answer, watch sends an operation
// that does: after unsignalled operations there may be no other for a while, and their sender must
// learn that they are done.
func (c *conn) watch(asked, moved uint64) {
	c.q.mu.Lock()
	c.mu.watched = false
	isSilent := asked > c.mu.answered && c.movedLocked() == moved
	switch {
	case len(c.mu.pending) == 0 || c.mu.broken:
		c.q.mu.Unlock()
		return
	case isSilent:
		c.breakLocked()
		c.q.mu.Unlock()
		return
	case c.mu.pending[len(c.mu.pending)-1].flags&asks == 0:
		p := pending{frame: frame{op: opAsk, flags: asks}, to: c.to, tag: rdma.Unsignalled}
		c.mu.frames = p.frame.append(c.mu.frames)
		c.pendLocked(p)
	}
	c.watchLocked()
	c.q.mu.Unlock()
	c.flush()
}

// pendLocked adds an operation to those that are pending.
func (c *conn) pendLocked(p pending) {
	if len(c.mu.pending) == 0 {
		c.mu.pending = c.mu.room[:0]
	}
	if c.mu.pending = append(c.mu.pending, p); cap(c.mu.pending) > cap(c.mu.room) {
		c.mu.room = c.mu.pending[:0]
	}
	if p.flags&asks != 0 {
		c.mu.asked = c.mu.answered + uint64(len(c.mu.pending))
	}
	c.mu.unreported++
}

// flush sends what has been appended. It does not wait for the network. The time in which an answer
// must come begins only now: while the queue holds operations back, the peer's silence means nothing.
func (c *conn) flush() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.q.mu.Lock()
	l, frames := c.mu.link, c.mu.frames
	if l == nil || len(frames) == 0 {
		c.q.mu.Unlock()
		return
	}
	c.mu.frames = c.spare[:0]
	c.watchLocked()
	c.q.mu.Unlock()
	_, _ = l.stream.Write(frames) // into the outbox; an error ends the stream, which run notices
	l.outbox.send()
	c.spare = frames
	if cap(frames) > unsentMax {
		c.spare = nil
	}
}

// run is the life of a connection.
func (c *conn) run(ctx context.Context) {
	defer close(c.ended)
	l, err := c.q.nic.dial(ctx, hosts.Greeting{Purpose: operations, To: c.to, Worker: uint16(c.q.worker)}, nil)
	if err == nil {
		stop := context.AfterFunc(ctx, l.outbox.abort)
		if c.attach(l) {
			c.flush()
			_ = c.receive(l) // for whatever reason, the connection has ended
		}
		stop()
		_ = l.outbox.Close()
	}
	c.end()
}

// attach makes the link the connection's, unless that is broken.
func (c *conn) attach(l *link) bool {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	if c.mu.broken {
		return false
	}
	l.outbox.hold()
	c.mu.link = l
	return true
}

// receive reads answers until the connection ends.
func (c *conn) receive(l *link) error {
	in := bufio.NewReaderSize(l.stream, bufferBytes)
	var header [answerBytes]byte
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return err
		}
		a := decodeAnswer(header[:])
		p, err := c.answered(a)
		if err != nil {
			return err
		}
		if p.op == rdma.OpRead && a.outcome == done {
			if _, err := io.ReadFull(in, p.dst); err != nil {
				return err
			}
		}
		c.complete(a)
	}
}

// answered returns the operation that an answer is for. The operations before it, which did not ask for
// an answer, are done.
func (c *conn) answered(a answer) (pending, error) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	for c.mu.answered < a.number && len(c.mu.pending) > 0 && c.mu.pending[0].flags&asks == 0 {
		c.popLocked()
		c.mu.unreported--
	}
	if len(c.mu.pending) == 0 || c.mu.answered != a.number {
		return pending{}, fmt.Errorf("%w: answer to operation %d, %d is next", hosts.ErrGarbage, a.number, c.mu.answered)
	}
	p := c.mu.pending[0]
	wanted := 0
	if p.op == rdma.OpRead && a.outcome == done {
		wanted = len(p.dst)
	}
	if _, ok := a.outcome.err(); !ok || a.bytes != wanted {
		return pending{}, fmt.Errorf("%w: outcome %d with %d bytes", hosts.ErrGarbage, a.outcome, a.bytes)
	}
	return p, nil
}

// complete ends the operation that an answer is for.
func (c *conn) complete(a answer) {
	c.q.mu.Lock()
	p := c.mu.pending[0]
	c.popLocked()
	err, _ := a.outcome.err() // the outcome is known: answered has checked
	first := false
	if err == nil && p.tag == rdma.Unsignalled {
		c.mu.unreported--
	} else if !c.q.mu.closed {
		first = c.q.reportLocked(&p, err)
	}
	c.q.mu.Unlock()
	if first {
		c.q.bell.Ring()
	}
}

// popLocked removes the first pending operation.
func (c *conn) popLocked() {
	c.mu.pending[0] = pending{} // releases its buffer
	c.mu.pending = c.mu.pending[1:]
	c.mu.answered++
}

// end fails what is pending.
func (c *conn) end() {
	c.q.mu.Lock()
	c.mu.broken, c.mu.over = true, true
	first := false
	for i := range c.mu.pending {
		if !c.q.mu.closed {
			first = c.q.reportLocked(&c.mu.pending[i], rdma.ErrBroken) || first
		}
	}
	c.mu.pending, c.mu.room, c.mu.frames, c.mu.link = nil, nil, nil, nil
	c.q.mu.Unlock()
	if first {
		c.q.bell.Ring()
	}
}

// breakLocked ends the connection.
func (c *conn) breakLocked() {
	c.mu.broken = true
	c.cancel()
}

// finishLocked ends the connection once the agent has carried out what it has received.
func (c *conn) finishLocked() {
	l := c.mu.link
	if l == nil || c.mu.broken {
		c.breakLocked()
		return
	}
	c.mu.broken = true
	l.outbox.finish()
}

// await waits until the connection has ended, and ends it when patience is over.
func (c *conn) await(patience context.Context) {
	select {
	case <-c.ended:
		return
	case <-patience.Done():
	}
	c.cancel()
	<-c.ended
}
