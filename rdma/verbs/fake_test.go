package verbs

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// A wire joins the cards of a test, which carry out requests in memory as they are posted. Real cards are slower, and no
// stricter: these ones, too, refuse what their queues have no room for, and break connections.
type wire struct {
	t       testing.TB
	mu      sync.Mutex
	number  uint32
	pairs   map[uint32]*fakePair
	posts   map[uint32]*fakePost
	regions map[uint32]*fakeRegion
	refuses map[string]error // what cards cannot do, by the name of the method
	isSlow  bool             // sends of datagrams are not done until release
	isMute  bool             // cards carry out requests, and report no completion
	isDeaf  bool             // completions come later than their requests, and without an event
	isRxe   bool             // cards must get no fenced requests
	forgets bool             // the requests that are handed over next wait until there are further ones
	count   counts
}

// counts are what cards have been asked for.
type counts struct{ exchanges, doorbells, requests, signalled, inlined, fenced, reads, arms int }

func newWire(t testing.TB) *wire {
	return &wire{t: t, pairs: map[uint32]*fakePair{}, posts: map[uint32]*fakePost{}, regions: map[uint32]*fakeRegion{}, refuses: map[string]error{}}
}

// counted returns what has been counted since the last call.
func (w *wire) counted() (c counts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, w.count = w.count, counts{}
	return c
}

func (w *wire) refuse(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses[what] = err
}

func (w *wire) refusal(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refuses[what]
}

func (w *wire) next() uint32 {
	w.number++
	return w.number
}

// A fakeCard implements card.
type fakeCard struct {
	wire   *wire
	events chan event
	closed chan struct{}
	parts  atomic.Int32 // regions, lanes and posts that are open
}

// endPart notes the end of a part of the card, which must be open.
func (c *fakeCard) endPart() {
	c.parts.Add(-1)
	select {
	case <-c.closed:
		c.wire.t.Error("a card was closed before a part of it")
	default:
	}
}

func (w *wire) card() *fakeCard {
	return &fakeCard{wire: w, events: make(chan event), closed: make(chan struct{})}
}

func (c *fakeCard) limits() limits {
	return limits{device: "fake0", port: 1, self: address{mtu: 3, reads: 16}, inline: 64, sends: 1 << 14, reads: 16, forgets: c.wire.isRxe}
}

type fakeRegion struct {
	card  *fakeCard
	wire  *wire
	key   uint32
	at    unsafe.Pointer
	bytes uint64
}

func (c *fakeCard) register(at unsafe.Pointer, bytes uint64) (region, error) {
	if err := c.wire.refusal("register"); err != nil {
		return nil, err
	}
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.parts.Add(1)
	r := &fakeRegion{card: c, wire: c.wire, key: c.wire.next(), at: at, bytes: bytes}
	c.wire.regions[r.key] = r
	return r, nil
}

func (r *fakeRegion) keys() (local, remote uint32) { return r.key, r.key }

func (r *fakeRegion) close() error {
	r.card.endPart()
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	delete(r.wire.regions, r.key)
	return r.wire.refuses["deregister"]
}

// words returns memory by a key and an address, nil if it is not all there.
func (w *wire) words(key uint32, address uint64, bytes uint32) []uint64 {
	r := w.regions[key]
	if r == nil || address < uint64(uintptr(r.at)) || address+uint64(bytes) > uint64(uintptr(r.at))+r.bytes || address%8 != 0 || bytes%8 != 0 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Add(r.at, address-uint64(uintptr(r.at)))), bytes/8)
}

func (c *fakeCard) next() (event, error) {
	select {
	case e := <-c.events:
		return e, nil
	case <-c.closed:
		return event{}, errInterrupted
	}
}

func (c *fakeCard) close() error {
	if n := c.parts.Load(); n != 0 {
		c.wire.t.Errorf("a card is closed, and %d parts of it are open", n)
	}
	close(c.closed)
	return nil
}

// A fakeChannel is a completion queue.
type fakeChannel struct {
	wire        *wire
	room        int
	done        []completion
	isArmed     bool
	event       chan struct{}
	interrupted chan struct{}
	once        sync.Once
}

func (w *wire) channel(room int) fakeChannel {
	return fakeChannel{wire: w, room: room, event: make(chan struct{}, 1), interrupted: make(chan struct{})}
}

func (c *fakeChannel) addLocked(d completion) {
	if c.wire.isMute {
		return
	}
	if c.done = append(c.done, d); len(c.done) > c.room {
		c.wire.t.Errorf("a completion queue with room for %d holds %d", c.room, len(c.done))
	}
	if c.isArmed && !c.wire.isDeaf {
		c.isArmed = false
		select {
		case c.event <- struct{}{}:
		default: // there is one that nobody has waited for
		}
	}
}

func (c *fakeChannel) takeLocked(done []completion) int {
	n := copy(done, c.done)
	c.done = c.done[:copy(c.done, c.done[n:])]
	return n
}

func (c *fakeChannel) arm() error {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.count.arms++
	c.isArmed = true
	return c.wire.refuses["arm"]
}

func (c *fakeChannel) wait() error {
	select {
	case <-c.event:
		return nil
	case <-c.interrupted:
		return errInterrupted
	}
}

func (c *fakeChannel) interrupt() { c.once.Do(func() { close(c.interrupted) }) }

// A fakeLane implements lane.
type fakeLane struct {
	fakeChannel
	card     *fakeCard
	receives int // in the shared receive queue
	most     int
	open     int // queue pairs
	isClosed bool
	waiting  []request // see wire.forgets
}

func (c *fakeCard) lane(receives int) (lane, error) {
	if err := c.wire.refusal("lane"); err != nil {
		return nil, err
	}
	c.parts.Add(1)
	return &fakeLane{card: c, fakeChannel: c.wire.channel(receives), most: receives}, nil
}

func (l *fakeLane) close() error {
	l.card.endPart()
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	if l.isClosed = true; l.open > 0 {
		l.wire.t.Errorf("a lane is closed, and %d queue pairs of it are open", l.open)
	}
	return l.wire.refuses["close lane"]
}

func (l *fakeLane) exchange(requests []request, receives int, done []completion) (n, doorbells int, err error) {
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	l.wire.count.exchanges++
	if err := l.wire.refuses["exchange"]; err != nil {
		return 0, 0, err
	}
	if l.receives += receives; l.receives > l.most {
		l.wire.t.Errorf("a receive queue of %d has %d entries", l.most, l.receives)
	}
	if l.wire.forgets && len(requests) > 0 {
		l.wire.forgets = false
		l.waiting = slices.Clone(requests)
		return 0, 1, nil
	}
	if len(requests) > 0 {
		l.rememberLocked()
	}
	for i := range requests {
		if i == 0 || requests[i].pair != requests[i-1].pair {
			doorbells++
		}
		p := l.wire.pairs[uint32(requests[i].pair)]
		if p == nil || p.lane != l {
			l.wire.t.Errorf("a request of no queue pair: %+v", requests[i])
			continue
		}
		p.postLocked(&requests[i])
	}
	l.wire.count.doorbells += doorbells
	if l.wire.isDeaf && len(requests) > 0 {
		return 0, doorbells, nil
	}
	n = l.takeLocked(done)
	for _, d := range done[:n] {
		if p := l.wire.ofConn(l, connOf(d.id)); p != nil && d.isReceive == 0 {
			p.freeLocked(d.id)
		}
	}
	return n, doorbells, nil
}

// rememberLocked carries out what was forgotten.
func (l *fakeLane) rememberLocked() {
	for i := range l.waiting {
		if p := l.wire.pairs[uint32(l.waiting[i].pair)]; p != nil {
			p.postLocked(&l.waiting[i])
		}
	}
	l.waiting = nil
}

// ofConn returns the queue pair of a connection.
func (w *wire) ofConn(l *fakeLane, conn uint32) *fakePair {
	for _, p := range w.pairs {
		if p.lane == l && p.conn == conn {
			return p
		}
	}
	return nil
}

// A fakePair implements pair.
type fakePair struct {
	lane   *fakeLane
	number uint32
	sends  int
	conn   uint32   // of the connection whose requests it has
	taken  []uint64 // ids in the send queue
	to     uint32
	ready  bool
	failed bool
}

func (l *fakeLane) pair(sends int) (pair, error) {
	if err := l.wire.refusal("pair"); err != nil {
		return nil, err
	}
	l.wire.mu.Lock()
	defer l.wire.mu.Unlock()
	p := &fakePair{lane: l, number: l.wire.next(), sends: sends}
	l.wire.pairs[p.number] = p
	if l.open++; l.isClosed {
		l.wire.t.Error("a queue pair of a lane that is closed")
	}
	l.room += sends
	return p, nil
}

func (p *fakePair) address() address { return address{pair: p.number, mtu: 3, reads: 16} }
func (p *fakePair) handle() uint64   { return uint64(p.number) }

func (p *fakePair) connect(to address, _ int) error {
	p.lane.wire.mu.Lock()
	defer p.lane.wire.mu.Unlock()
	p.to, p.ready = to.pair, true
	return p.lane.wire.refuses["connect"]
}

func (p *fakePair) fail() error {
	p.lane.wire.mu.Lock()
	defer p.lane.wire.mu.Unlock()
	p.failed = true
	return nil
}

func (p *fakePair) close() error {
	p.lane.wire.mu.Lock()
	defer p.lane.wire.mu.Unlock()
	delete(p.lane.wire.pairs, p.number)
	p.lane.done = slices.DeleteFunc(p.lane.done, func(d completion) bool { return d.isReceive == 0 && connOf(d.id) == p.conn }) // as some cards do
	p.lane.room -= p.sends
	p.lane.open--
	return p.lane.wire.refuses["close pair"]
}

// freeLocked frees the places of a request, of which a completion was taken, and of those before it.
func (p *fakePair) freeLocked(id uint64) {
	for i, taken := range p.taken {
		if taken == id {
			p.taken = p.taken[i+1:]
			return
		}
	}
}

// postLocked carries out one request.
func (p *fakePair) postLocked(r *request) {
	w := p.lane.wire
	p.conn = connOf(r.id)
	if len(p.taken) >= p.sends {
		r.refusal = uint16(syscall.ENOMEM)
		w.t.Errorf("a send queue of %d is full", p.sends)
		return
	}
	if err := w.refuses["post"]; err != nil {
		r.refusal = uint16(syscall.EINVAL)
		return
	}
	p.taken = append(p.taken, r.id)
	w.count.add(r)
	s := statusFlushed
	if !p.failed {
		s = p.carryOutLocked(r)
	}
	if s != statusSuccess {
		p.failed = true
	}
	if s != statusSuccess || r.flags&signalled != 0 {
		p.lane.addLocked(completion{id: r.id, status: s})
	}
}

func (c *counts) add(r *request) {
	c.requests++
	if r.op == wireRead {
		c.reads++
	}
	if r.flags&signalled != 0 {
		c.signalled++
	}
	if r.flags&inlined != 0 {
		c.inlined++
	}
	if r.flags&fenced != 0 {
		c.fenced++
	}
}

func (p *fakePair) carryOutLocked(r *request) status {
	w := p.lane.wire
	other := w.pairs[p.to]
	if other == nil || !other.ready || other.failed || other.to != p.number {
		return statusRetries
	}
	if r.bytes > 0 {
		here, there := w.words(r.lkey, r.local, r.bytes), w.words(r.rkey, r.remote, r.bytes)
		switch {
		case here == nil:
			w.t.Errorf("a request of memory that is not registered: %+v", r)
			return status(4)
		case there == nil:
			return statusAccess
		case r.op == wireRead:
			copyWords(here, there)
		default:
			copyWords(there, here)
		}
	}
	if r.op == wireWriteRing {
		if other.lane.receives == 0 {
			return statusNotReady
		}
		other.lane.receives--
		other.lane.addLocked(completion{isReceive: 1})
	}
	return statusSuccess
}

// A fakePost implements post.
type fakePost struct {
	fakeChannel
	number   uint32
	buffers  []fakeBuffer
	held     []func() // ends sends
	isClosed bool
}

type fakeBuffer struct {
	id uint64
	b  []byte
}

func (c *fakeCard) post(receives, sends int) (post, error) {
	if err := c.wire.refusal("post pair"); err != nil {
		return nil, err
	}
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	p := &fakePost{fakeChannel: c.wire.channel(receives + sends), number: c.wire.next()}
	c.wire.posts[p.number] = p
	return p, nil
}

func (p *fakePost) address() address { return address{pair: p.number, mtu: 3, key: p.number + 1} }

// A fakeRoute implements route. The card looks at it as long as a send is under way.
type fakeRoute struct {
	post     *fakePost
	sends    int
	isClosed bool
}

func (r *fakeRoute) close() error {
	r.post.wire.mu.Lock()
	defer r.post.wire.mu.Unlock()
	if r.isClosed = true; r.sends > 0 && !r.post.isClosed {
		r.post.wire.t.Errorf("a route is closed, and %d sends are under way", r.sends)
	}
	return nil
}

func (p *fakePost) route(address, int) (route, error) {
	return &fakeRoute{post: p}, p.wire.refusal("route")
}

// release ends the sends that were slow; later ones are not.
func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isSlow = false
	for _, p := range w.posts {
		for _, end := range p.held {
			end()
		}
		p.held = nil
	}
}

func (p *fakePost) send(r route, to address, id uint64, at unsafe.Pointer, bytes int, _ uint32) error {
	if err := p.wire.refusal("send"); err != nil {
		return err
	}
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	by := r.(*fakeRoute)
	by.sends++
	end := func() { by.sends--; p.addLocked(completion{id: id}) }
	if p.held = append(p.held, end); !p.wire.isSlow {
		end()
		p.held = p.held[:len(p.held)-1]
	}
	other := p.wire.posts[to.pair]
	if other == nil || to.key != to.pair+1 || len(other.buffers) == 0 {
		return nil // lost
	}
	b := other.buffers[0]
	other.buffers = other.buffers[1:]
	n := copy(b.b[grhBytes:], unsafe.Slice((*byte)(at), bytes))
	other.addLocked(completion{id: b.id, bytes: uint32(grhBytes + n), isReceive: 1})
	return nil
}

func (p *fakePost) receive(id uint64, at unsafe.Pointer, bytes int, _ uint32) error {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	p.buffers = append(p.buffers, fakeBuffer{id, unsafe.Slice((*byte)(at), bytes)})
	return p.wire.refuses["receive"]
}

func (p *fakePost) take(done []completion) (int, error) {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	return p.takeLocked(done), nil
}

func (p *fakePost) close() error {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	delete(p.wire.posts, p.number)
	p.isClosed = true
	return nil
}

// copyWords copies as a card does: words in rising order, and each line of the source from one moment, if who writes it changes its first
// word before and after the rest.
func copyWords(dst, src []uint64) {
	for i := 0; i < len(src); {
		n := min(len(src)-i, 8-int(uintptr(unsafe.Pointer(&src[i]))/8%8))
		for {
			first := atomic.LoadUint64(&src[i])
			line := [8]uint64{first}
			for j := 1; j < n; j++ {
				line[j] = atomic.LoadUint64(&src[i+j])
			}
			if atomic.LoadUint64(&src[i]) == first {
				for j := range n {
					atomic.StoreUint64(&dst[i+j], line[j])
				}
				break
			}
		}
		i += n
	}
}
