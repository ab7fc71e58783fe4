package verbs

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// An operation has been posted and is not done.
type operation struct {
	op     rdma.Op
	to     rdma.MachineID
	key    rdma.Key
	off    uint64
	bytes  int
	tag    uint64
	dst    []byte // where the bytes of a READ go
	src    []byte // a copy of the bytes of a WRITE that waits
	issued int    // how many bytes have requests
	err    error  // why the operation is refused, once that is known
}

func (o *operation) fail(err error) *rdma.Error {
	return &rdma.Error{Op: o.op, To: o.to, Key: o.key, Offset: o.off, Bytes: o.bytes, Err: err}
}

// isWaitedFor reports whether the operation changes the peer's memory, and somebody waits for
// it.
func (o *operation) isWaitedFor() bool {
	return o.tag != rdma.Unsignalled && o.op != rdma.OpRead && o.err == nil
}

// An entry is a request that has been issued, or an operation that was refused and will be
// reported in its turn.
type entry struct {
	operation
	place  uint64 // the place of the request; of a refused operation, the place of the request before it
	at     uint64 // where its bytes are staged
	end    uint64 // the position up to which to free the staging when it is done
	from   int    // where its n bytes begin among those of the operation
	n      int
	isLast bool // the operation ends with it
	isMark bool // a READ of no operation, which settles the WRITEs before it
}

// A conn joins a queue to the queue pair of its sibling. Its goroutine, run, connects, hears of keys, and
// at the end fails what is pending.
type conn struct {
	q      *Queue
	to     rdma.MachineID
	serial uint32
	cancel context.CancelFunc // ends run
	drain  chan struct{}      // closed when all that was issued is done, after finishLocked
	ended  chan struct{}      // closed when run has ended
	ask    chan struct{}      // has an element if there are questions to send
	// isUnflushed says that the connection is in its queue's unflushed. Like that list, it belongs to
	// the goroutine that posts.
	isUnflushed bool

	mu struct { // the queue's mu guards it
		pair       pair // nil before run has connected
		staged     *nvram.Memory
		lkey       uint32
		staging    staging
		flow       flow
		batch      []request // issued, and not handed to the card
		isReady    bool      // the connection is in the queue's ready
		entries    []entry
		room       []entry // the memory of entries once that is empty
		finished   []entry // their requests are done, but their report must wait
		settled    uint64  // WRITEs up to this place are in the peer's memory
		last       request // the last WRITE that somebody waits for; its op is wireRead if a READ settles it
		waiting    []operation
		bytes      int // the number of bytes in waiting
		keys       map[rdma.Key]*remote
		asked      map[question]bool
		questions  []question
		unreported int         // completions to come from Poll, unless they are silent
		reason     error       // why the connection is broken
		broken     bool        // nothing more is posted
		over       bool        // all that was pending has failed
		finishing  bool        // the queue is being closed
		handed     uint64      // the last place with a completion that the card has
		given      uint64      // the last place that the card has
		progress   uint64      // how often something pending was done or answered
		seen       uint64      // progress at the last look
		idleLooks  int         // how many of the last looks in a row have found no progress
		stall      *time.Timer // see watchLocked; nil while nothing is pending
	}
}

func (q *Queue) newConnLocked(to rdma.MachineID) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	q.mu.serial++
	c := &conn{q: q, to: to, serial: q.mu.serial, cancel: cancel, drain: make(chan struct{}), ended: make(chan struct{}), ask: make(chan struct{}, 1)}
	c.mu.keys = make(map[rdma.Key]*remote)
	c.mu.asked = make(map[question]bool)
	c.mu.flow.depth = uint64(min(sendDepth, q.nic.limits.sends))
	c.mu.staging.size = stagingBytes
	q.mu.live[c.serial] = c
	go c.run(ctx)
	return c
}

// acceptLocked issues an operation, or lets it wait. It fails with rdma.ErrFull, and with rdma.ErrRange if
// the place is outside of a known registration; but if others wait, issueNextLocked refuses the operation in
// its turn.
func (c *conn) acceptLocked(o operation, src []byte) error {
	if len(c.mu.entries)+len(c.mu.waiting)+len(c.mu.finished) >= depth || c.mu.bytes > waitingMax {
		return rdma.ErrFull
	}
	m := c.mu.keys[o.key]
	if m != nil && len(c.mu.waiting) == 0 && o.op != rdma.OpRing && !m.has(o.off, o.bytes) {
		return rdma.ErrRange
	}
	isReachable := o.op == rdma.OpRing || m.knows(o.off, o.bytes)
	c.mu.unreported++
	c.watchLocked()
	o.src = src
	if c.mu.pair != nil && len(c.mu.waiting) == 0 && isReachable && c.issueLocked(&o, m) {
		return nil
	}
	o.src = slices.Clone(o.src)
	c.mu.bytes += len(o.src)
	c.mu.waiting = append(c.mu.waiting, o)
	if !isReachable {
		c.askLocked(&o)
	}
	return nil
}

// askLocked asks the peer for the pieces of memory that an operation needs, unless they are known or have been asked for.
func (c *conn) askLocked(o *operation) {
	m := c.mu.keys[o.key]
	for i := o.off / pieceBytes; i*pieceBytes < o.off+uint64(o.bytes); i++ {
		q := question{o.key, uint32(min(i, math.MaxUint32))} // no memory has pieces beyond this number: the answer will say so
		if !c.mu.asked[q] && !m.knows(i*pieceBytes, nvram.WordBytes) {
			c.mu.asked[q] = true
			c.mu.questions = append(c.mu.questions, q)
		}
	}
	select {
	case c.ask <- struct{}{}:
	default: // ask has an element already
	}
}

// issueWaitingLocked issues what waits, in order, as far as there is room.
func (c *conn) issueWaitingLocked() {
	if c.mu.broken || c.mu.pair == nil || len(c.mu.waiting) == 0 {
		return
	}
	n := 0
	for n < len(c.mu.waiting) && c.issueNextLocked(&c.mu.waiting[n]) {
		c.mu.waiting[n] = operation{} // releases its buffers
		n++
	}
	if c.mu.waiting = c.mu.waiting[n:]; len(c.mu.waiting) == 0 {
		c.mu.waiting = nil
	}
	c.endBatchLocked()
	c.advanceLocked() // reports what was refused
}

// handOverLocked issues what waits, and hands it to the card. Then it rings the bell if there
// is something to poll, even if that is only an operation that was refused before the card got
// it.
func (c *conn) handOverLocked() {
	before := len(c.q.mu.reports)
	c.issueWaitingLocked()
	if isNews := c.q.exchangeLocked(); isNews || (before == 0 && len(c.q.mu.reports) > 0) {
		c.q.bell.Ring()
	}
}

// issueNextLocked issues the first operation that waits. It returns false if the operation must
// wait longer.
func (c *conn) issueNextLocked(o *operation) bool {
	m := c.mu.keys[o.key]
	if o.op != rdma.OpRing && o.err == nil {
		switch {
		case m != nil && !m.has(o.off, o.bytes):
			o.err = rdma.ErrRange
		case !m.knows(o.off, o.bytes):
			c.askLocked(o) // the registration may have ended since it was asked for
			return false
		}
	}
	before := len(o.src)
	isIssued := c.issueLocked(o, m)
	c.mu.bytes -= before - len(o.src)
	return isIssued
}

// issueLocked makes the requests of an operation. It returns false if there is no room for all
// of them now; a later call makes the rest. For an operation that is refused it makes an entry
// without a request, so that the refusal is reported in its turn.
func (c *conn) issueLocked(o *operation, m *remote) bool {
	if o.err != nil {
		o.src = nil
		c.appendLocked(entry{operation: *o, place: c.mu.flow.issued, isLast: true})
		return true
	}
	for {
		from := o.off + uint64(o.issued)
		n := min(o.bytes-o.issued, chunkBytes-int(from%rdma.LineBytes), pieceBytes-int(from%pieceBytes)) // chunks end at the end of a line
		if c.mu.flow.room() < 2 || c.isHeldBackLocked(o) {                                               // keep room for the READ of markLocked
			return false
		}
		at, end, ok := uint64(0), c.mu.staging.tail, true // for a ring, which has no bytes to stage
		if n > 0 {
			at, end, ok = c.mu.staging.take(n)
		}
		if !ok {
			return false
		}
		c.requestLocked(o, m, entry{at: at, end: end, from: o.issued, n: n, isLast: o.issued+n == o.bytes})
		if o.issued += n; o.issued == o.bytes {
			return true
		}
	}
}

// isHeldBackLocked reports whether an operation has to wait until READs are done, because the card cannot be relied on to do that.
func (c *conn) isHeldBackLocked(o *operation) bool {
	return c.q.nic.limits.forgets && o.op != rdma.OpRead && c.mu.flow.isBehindReads(wireWrite)
}

// requestLocked makes one request.
func (c *conn) requestLocked(o *operation, m *remote, e entry) {
	r := request{pair: c.mu.pair.handle(), op: wireRead, bytes: uint32(e.n), lkey: c.mu.lkey}
	if e.n > 0 {
		r.local = uint64(uintptr(c.mu.staged.Pointer(e.at, uint64(e.n))))
		at := o.off + uint64(e.from)
		r.remote, r.rkey = m.address+at, m.pieces[at/pieceBytes].rkey
	}
	if o.op != rdma.OpRead {
		r.op = wireWrite
		if e.n > 0 {
			c.mu.staged.CopyIn(e.at, o.src[:e.n])
			o.src = o.src[e.n:]
		}
	}
	if e.isLast && (o.op == rdma.OpRing || o.op == rdma.OpWriteRing) {
		r.op = wireWriteRing
	}
	if isInline(r.op, e.n, c.q.nic.limits.inline) {
		r.flags |= inlined
	}
	place, fence := c.mu.flow.next(r.op, e.n)
	if fence {
		r.flags |= fenced
	}
	r.id = idOf(c.serial, uint32(place))
	if c.mu.flow.isDue() {
		r.flags |= signalled
		c.mu.flow.signal(place)
	}
	switch {
	case r.op == wireRead:
		c.mu.last.op = wireRead // READs settle the WRITEs before them
	case o.isWaitedFor() && e.isLast:
		c.mu.last = r
	}
	e.operation, e.place = *o, place
	e.src = nil
	c.mu.batch = append(c.mu.batch, r)
	c.appendLocked(e)
}

// endBatchLocked gets a batch ready for the card. If the last WRITE that somebody waits for has
// no READ after it, endBatchLocked adds one: a card acknowledges a WRITE when it has the bytes,
// and answers a READ only when all WRITEs before it are in memory. It asks for the completion
// of the last READ in the batch.
func (c *conn) endBatchLocked() {
	if len(c.mu.batch) == 0 {
		return
	}
	if w := c.mu.last; w.op != wireRead {
		c.mu.last.op = wireRead
		c.markLocked(w)
	}
	for i := len(c.mu.batch) - 1; i >= 0; i-- {
		if r := &c.mu.batch[i]; r.op == wireRead {
			r.flags |= signalled
			c.mu.flow.signal(c.mu.flow.place(placeOf(r.id)))
			break
		}
	}
	if !c.mu.isReady {
		c.mu.isReady = true
		c.q.mu.ready = append(c.q.mu.ready, c)
	}
}

// markLocked issues a READ of the last word of a WRITE, for which issueLocked has kept room.
// Nobody wants its bytes. They go to a word of their own, behind the ring of the staging: a
// word in the ring may hold bytes that the card has not sent yet, or will send again.
func (c *conn) markLocked(w request) {
	place := c.mu.flow.settle()
	c.mu.flow.signal(place)
	c.mu.batch = append(c.mu.batch, request{
		pair: w.pair, op: wireRead, flags: signalled, id: idOf(c.serial, uint32(place)), bytes: nvram.WordBytes, lkey: c.mu.lkey, rkey: w.rkey,
		local:  uint64(uintptr(c.mu.staged.Pointer(stagingBytes, nvram.WordBytes))),
		remote: w.remote + uint64(w.bytes) - nvram.WordBytes,
	})
	c.appendLocked(entry{operation: operation{op: rdma.OpRead, tag: rdma.Unsignalled}, place: place, end: c.mu.staging.tail, isMark: true})
}

// appendLocked adds an entry. Once there are none, it uses their memory again (room).
func (c *conn) appendLocked(e entry) {
	if len(c.mu.entries) == 0 {
		c.mu.entries = c.mu.room[:0]
	}
	if c.mu.entries = append(c.mu.entries, e); cap(c.mu.entries) > cap(c.mu.room) {
		c.mu.room = c.mu.entries[:0]
	}
}

// advanceLocked removes the entries that are done. It reports their operations in order, up to the first
// WRITE that somebody waits for and no READ has settled.
func (c *conn) advanceLocked() {
	for len(c.mu.entries) > 0 && c.mu.entries[0].place <= c.mu.flow.done {
		e := c.mu.entries[0]
		c.mu.entries[0] = entry{} // releases its buffers
		c.mu.entries = c.mu.entries[1:]
		c.mu.staging.free(e.end)
		if e.op == rdma.OpRead && e.err == nil {
			c.mu.settled = e.place
			if !e.isMark {
				c.mu.staged.CopyOut(e.dst[e.from:e.from+e.n], e.at)
			}
		}
		if e.isLast {
			c.mu.finished = append(c.mu.finished, e)
		}
	}
	n := 0
	for ; n < len(c.mu.finished); n++ {
		e := &c.mu.finished[n]
		if e.isWaitedFor() && e.place > c.mu.settled {
			break
		}
		c.reportLocked(&e.operation, e.err)
	}
	c.mu.finished = slices.Delete(c.mu.finished, 0, n)
	if c.mu.finishing && len(c.mu.entries) == 0 {
		c.drainedLocked()
	}
}

// reportLocked queues the completion of an operation. An unsignalled operation has one only if
// it failed, and after Queue.Close none has one.
func (c *conn) reportLocked(o *operation, err error) {
	if (err == nil && o.tag == rdma.Unsignalled) || c.q.mu.closed {
		c.mu.unreported--
		return
	}
	report := rdma.Completion{Tag: o.tag, To: o.to}
	if err != nil {
		report.Err = o.fail(err)
	}
	c.q.mu.reports = append(c.q.mu.reports, report)
}

// run is the life of a connection.
func (c *conn) run(ctx context.Context) {
	defer close(c.ended)
	link, reason := c.connect(ctx)
	if reason == nil {
		reason = c.live(ctx, link)
	}
	c.q.mu.Lock()
	c.breakLocked(reason)
	c.q.mu.Unlock()
	if link != nil {
		c.disconnect(link)
	}
	c.end()
}

// A link is a connection on which both machines have agreed.
type link struct {
	stream net.Conn // over which keys are asked for
	pair   pair
	memory region
}

// connect makes a queue pair, and exchanges its address for that of the peer's queue pair.
func (c *conn) connect(ctx context.Context) (*link, error) {
	staged, err := nvram.NewShared(stagingBytes + nvram.WordBytes)
	if err != nil {
		return nil, err
	}
	l := &link{}
	if l.memory, err = c.q.nic.registerMemory(staged); err != nil {
		return nil, err
	}
	if l.pair, err = c.q.lane.pair(int(c.mu.flow.depth)); err != nil {
		return nil, errors.Join(err, l.memory.close())
	}
	stream, to, err := c.q.nic.dial(ctx, greeting{Greeting: hosts.Greeting{Purpose: operations, To: c.to, Worker: uint16(c.q.worker)}, at: l.pair.address()})
	if err == nil {
		l.stream = stream
		err = l.pair.connect(to, c.q.nic.cfg.TrafficClass)
	}
	if err != nil {
		c.disconnect(l)
		return nil, err
	}
	c.attach(l, staged)
	return l, nil
}

// attach makes the link the connection's, unless that is broken, and hands what waits to the card.
func (c *conn) attach(l *link, staged *nvram.Memory) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	if c.mu.broken {
		return
	}
	c.mu.pair, c.mu.staged = l.pair, staged
	c.mu.lkey, _ = l.memory.keys()
	c.mu.progress++
	c.handOverLocked()
}

// live asks for keys and hears answers until the connection ends.
func (c *conn) live(ctx context.Context, l *link) error {
	stop := context.AfterFunc(ctx, func() { _ = l.stream.SetDeadline(time.Unix(1, 0)) }) // in the past: hear and askFor fail
	defer stop()
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		c.askFor(ctx, l.stream)
	}()
	err := c.hear(l.stream)
	c.cancel()
	<-asking
	if errors.Is(err, hosts.ErrGarbage) {
		return err
	}
	return errClosedByPeer
}

// askFor sends questions.
func (c *conn) askFor(ctx context.Context, stream net.Conn) {
	for {
		c.q.mu.Lock()
		questions := c.mu.questions
		c.mu.questions = nil
		c.q.mu.Unlock()
		var b []byte
		for _, q := range questions {
			b = q.append(b)
		}
		if _, err := stream.Write(b); err != nil {
			return // hear notices
		}
		select {
		case <-c.ask:
		case <-ctx.Done():
			return
		}
	}
}

// hear takes answers until the connection ends.
func (c *conn) hear(stream net.Conn) error {
	var b [answerBytes]byte
	for {
		if _, err := io.ReadFull(stream, b[:]); err != nil {
			return err
		}
		a, err := decodeAnswer(b[:])
		if err != nil {
			return err
		}
		c.learn(a)
	}
}

// learn takes an answer about the memory of a key: it notes where the memory is, or that there
// is none, and issues the operations that have waited for the answer.
func (c *conn) learn(a answer) {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.mu.progress++
	if a.kind != ended {
		delete(c.mu.asked, a.question)
	}
	switch a.kind {
	case registered, outside:
		m := c.mu.keys[a.key]
		if m == nil {
			m = &remote{address: a.address, bytes: a.bytes}
			c.mu.keys[a.key] = m
		}
		if a.kind == registered {
			m.learn(a.piece, a.rkey)
		}
	case unpinned:
		c.breakLocked(errUnpinned)
		return
	case ended:
		delete(c.mu.keys, a.key)
		return
	case unknown:
		for i := range c.mu.waiting {
			if o := &c.mu.waiting[i]; o.key == a.key && o.op != rdma.OpRing {
				o.err = rdma.ErrKey
				c.mu.bytes -= len(o.src)
				o.src = nil
			}
		}
	}
	c.handOverLocked()
}

// disconnect ends the queue pairs at both ends. If the queue is being closed, it waits until
// the other end has none any more, but not longer than closePatience.
func (c *conn) disconnect(l *link) {
	_ = l.pair.fail() // if it cannot, the next call ends it, too
	if err := l.pair.close(); err != nil {
		c.q.nic.leaked(err)
	}
	if l.stream != nil {
		if c.q.isClosed() {
			_ = l.stream.SetDeadline(time.Now().Add(closePatience))
			if half, ok := l.stream.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				_, _ = io.Copy(io.Discard, l.stream) // ends when the other end has no queue pair any more
			}
		}
		_ = l.stream.Close()
	}
	if err := l.memory.close(); err != nil {
		c.q.nic.leaked(err)
	}
}

// end fails what is pending.
func (c *conn) end() {
	c.q.mu.Lock()
	isNews := c.q.exchangeLocked() // take the last completions of the queue pair: what is done is reported as done
	delete(c.q.mu.live, c.serial)
	c.mu.over = true
	if c.mu.stall != nil {
		c.mu.stall.Stop() // if look has begun, it finds the connection broken
	}
	before := len(c.q.mu.reports)
	for i := range c.mu.finished {
		c.failLocked(&c.mu.finished[i].operation)
	}
	for i := range c.mu.entries {
		if e := &c.mu.entries[i]; e.isLast {
			c.failLocked(&e.operation)
		}
	}
	for i := range c.mu.waiting {
		c.failLocked(&c.mu.waiting[i])
	}
	c.mu.pair, c.mu.staged, c.mu.finished, c.mu.entries, c.mu.room, c.mu.waiting, c.mu.batch = nil, nil, nil, nil, nil, nil, nil
	isNews = isNews || (before == 0 && len(c.q.mu.reports) > 0)
	c.drainedLocked()
	c.q.mu.Unlock()
	if isNews {
		c.q.bell.Ring()
	}
}

// failLocked reports an operation that was pending when the connection broke.
func (c *conn) failLocked(o *operation) {
	if o.err != nil {
		c.reportLocked(o, o.err)
		return
	}
	c.reportLocked(o, c.mu.reason)
}

// breakLocked ends the connection; the first reason counts. Requests that the card does not have yet never reach it.
func (c *conn) breakLocked(reason error) {
	if c.mu.broken {
		return
	}
	c.mu.broken = true
	c.mu.reason = c.q.nic.linkError(c.to, reason)
	c.mu.batch = nil
	c.cancel()
}

// finishLocked hands all that was flushed to the card; drain is closed when all of it is done.
// Nothing more is posted.
func (c *conn) finishLocked() {
	c.mu.finishing = true
	if c.mu.broken || c.mu.pair == nil {
		c.breakLocked(rdma.ErrClosed)
		return
	}
	if len(c.mu.entries) > 0 && c.mu.flow.lastSignal < c.mu.flow.issued { // the last request has no completion
		c.closingLocked()
	}
	if len(c.mu.entries) == 0 {
		c.drainedLocked()
	}
}

// closingLocked issues a WRITE of no bytes, whose completion tells that all requests before it
// are done.
func (c *conn) closingLocked() {
	if c.mu.flow.room() < 0 { // not even the place that is kept for a completion is free
		return
	}
	c.mu.last.op = wireRead // no READ has to settle WRITEs: a closed queue reports none
	c.emptyWriteLocked(0)
}

// emptyWriteLocked issues a WRITE of no bytes with a completion, for which there must be room, and gets it ready for the card.
func (c *conn) emptyWriteLocked(flags uint8) {
	place := c.mu.flow.settle()
	c.mu.flow.signal(place)
	c.mu.batch = append(c.mu.batch, request{pair: c.mu.pair.handle(), op: wireWrite, flags: signalled | flags, id: idOf(c.serial, uint32(place))})
	c.appendLocked(entry{operation: operation{op: rdma.OpWrite, tag: rdma.Unsignalled}, place: place, isMark: true, end: c.mu.staging.tail})
	c.endBatchLocked()
}

// drainedLocked closes drain, unless it is closed.
func (c *conn) drainedLocked() {
	select {
	case <-c.drain:
	default:
		close(c.drain)
	}
}

// await waits until all that was issued is done, but not longer than patience, and then until the connection has ended.
func (c *conn) await(patience time.Time) {
	timer := time.NewTimer(time.Until(patience))
	defer timer.Stop()
	select {
	case <-c.drain:
	case <-c.ended:
	case <-timer.C:
	}
	c.q.mu.Lock()
	c.breakLocked(rdma.ErrClosed)
	c.q.mu.Unlock()
	<-c.ended
}
