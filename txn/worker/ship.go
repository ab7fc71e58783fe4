package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// A HandlerID names a function that can be shipped. IDs from internalHandlers on belong to this
// package.
type HandlerID uint16

const internalHandlers HandlerID = 0xff00

// A Handler runs on a goroutine of its own at the machine that a function is shipped to. It owns
// arg.
type Handler func(ctx context.Context, arg []byte) (result []byte, err error)

// Handle registers fn as the function of h. All machines of an instance must register the same
// functions.
func (m *Machine) Handle(h HandlerID, fn Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handler(h) != nil {
		invariant.Violated("handler registered once", h, nil)
	}
	next := maps.Clone(*m.handlers.Load())
	next[h] = fn
	m.handlers.Store(&next)
}

func (m *Machine) handler(h HandlerID) Handler { return (*m.handlers.Load())[h] }

// Ship runs the function registered for h at the primary of the object with the given address
// (NSDI'14 section 3.4: function shipping), and returns the function's result. If this machine is
// the primary, Ship calls the function directly. An error that came from another machine is a
// *outcome.ShippedError.
func (m *Machine) Ship(ctx context.Context, to region.Addr, h HandlerID, arg []byte) ([]byte, error) {
	before := m.Routes.Load()
	machine, err := m.Primary(to)
	if err != nil {
		return nil, err
	}
	return m.shipTo(ctx, before, machine, h, arg)
}

// ShipTo is Ship to a given machine. outcome.ErrInDoubt means that the machine was lost and its regions
// have moved to others: the function may or may not have run there.
func (m *Machine) ShipTo(ctx context.Context, machine rdma.MachineID, h HandlerID, arg []byte) ([]byte, error) {
	return m.shipTo(ctx, m.Routes.Load(), machine, h, arg)
}

// shipTo is ShipTo for callers that have chosen the machine by the given routes. If the machine is
// lost, shipTo waits until the present routes differ from these; if they already do, the machine has
// been replaced.
func (m *Machine) shipTo(ctx context.Context, routes *route.List, machine rdma.MachineID, h HandlerID, arg []byte) ([]byte, error) {
	if machine == m.cfg.ID {
		fn := m.handler(h)
		if fn == nil {
			return nil, noHandler(h)
		}
		return fn(ctx, arg)
	}
	if len(arg) > m.MessageBodyMax() {
		return nil, fmt.Errorf("%w: a message of %d bytes to machine %d, the limit is %d", outcome.ErrTooLarge, len(arg), machine, m.MessageBodyMax())
	}
	reply, err := m.anyWorker().Call(ctx, machine, message.Message{Kind: message.Request, B: uint16(h), Body: arg}, nil)
	if err != nil {
		if failed := m.AwaitReplacement(ctx, routes, err); failed != nil {
			return nil, failed
		}
		return nil, outcome.InDoubt(err)
	}
	return reply.Body, outcome.Shipped(outcome.Code(reply.A), reply.Body)
}

func noHandler(h HandlerID) error { return fmt.Errorf("txn: nothing is registered for handler %#x", h) }

// MessageBodyMax is the maximal length of a message's body: a quarter of a queue.
func (m *Machine) MessageBodyMax() int { return m.cfg.MessageBytes/4 - message.HeaderBytes }

// errNotAPeer means that this machine has no connection to another machine, or has none yet.
var errNotAPeer = errors.New("txn: not a peer")

func notAPeer(m rdma.MachineID) error { return fmt.Errorf("%w: machine %d", errNotAPeer, m) }

// A call waits for one reply.
type call struct {
	to     rdma.MachineID
	wait   wait.Waiter
	answer message.Message
	// release marks a call that gives a slot or an annex back, prompt a call whose answer takes no time. since
	// is the beat at which its wait began.
	release, prompt bool
	since           uint64
	// unheard says that the caller no longer waits for the reply. If late is not nil, late is then
	// called with the reply. The worker's lock guards both, and is held while late runs.
	unheard bool
	late    func(message.Message)
}

// releaseLocked asks a machine, by a call of one of its handlers, to release what it has given this one
// over a connection: a slot or an annex. It does nothing if the connection has ended.
func (w *Worker) releaseLocked(at rdma.MachineID, connection uint32, h HandlerID, body []byte) {
	p := w.peerLocked(at)
	if p == nil || p.msgs == nil || p.broken != nil || p.connection != connection || w.stopped {
		return
	}
	c := &call{to: at, release: true}
	c.wait.Add(1) // only Quiesce waits for the reply
	w.releases++
	msg := message.Message{Kind: message.Request, B: uint16(h), Tag: w.openCallLocked(c), Body: body}
	if err := w.sendLocked(p, &msg); err != nil {
		w.fenceLocked(p, err)
	}
}

// openCallLocked registers a call and returns the tag that its reply will carry.
func (w *Worker) openCallLocked(c *call) (tag uint64) {
	w.nextTag++
	c.since = w.beats
	w.calls[w.nextTag] = c
	return w.nextTag
}

// endCallLocked removes a call that has been replied to, or will not be.
func (w *Worker) endCallLocked(tag uint64, c *call) {
	delete(w.calls, tag)
	if c.release {
		w.released++
	}
}

// replyLocked gives the call its reply, or gives the reply to late if nobody waits for it any more.
func (c *call) replyLocked(msg message.Message) {
	if c.unheard {
		if c.late != nil {
			c.late(msg)
		}
		return
	}
	c.answer = msg
	c.answer.Body = append([]byte(nil), msg.Body...)
	c.wait.DoneLocked(nil)
}

func (c *call) failLocked(err error) { c.wait.DoneLocked(err) }

// Call sends msg and waits for the reply. If the machine is lost, and machines are replaced, the
// error is outcome.ErrLost.
//
// late, if not nil, gets a reply that arrives when nobody waits for it any more. It is called with the
// worker's lock held, and may use the reply's body only during the call. The caller of Call must not
// hold the lock.
func (w *Worker) Call(ctx context.Context, to rdma.MachineID, msg message.Message, late func(message.Message)) (message.Message, error) {
	return w.LongCall(ctx, to, msg, 0, late)
}

// LongCall is Call with the patience extended by more.
func (w *Worker) LongCall(ctx context.Context, to rdma.MachineID, msg message.Message, more time.Duration, late func(message.Message)) (message.Message, error) {
	reply, err := w.tryCall(ctx, to, msg, more, late)
	if err != nil && w.m.cfg.Alive != nil && isLoss(err) && !errors.Is(err, outcome.ErrLost) {
		err = fmt.Errorf("%w: %w", outcome.ErrLost, err)
	}
	return reply, err
}

// tryCall is LongCall, but returns the loss of a machine as it is.
func (w *Worker) tryCall(ctx context.Context, to rdma.MachineID, msg message.Message, more time.Duration, late func(message.Message)) (message.Message, error) {
	c := &call{to: to, prompt: msg.Kind == message.Validate, wait: wait.NewWaiter(w.m.cfg.Clock), late: late}
	c.wait.Add(1)
	w.Lock()
	p := w.peerLocked(to)
	err := w.m.Gone()
	switch {
	case err != nil: // the machine is gone
	case w.stopped:
		err = outcome.ErrClosed
	case p == nil || p.msgs == nil:
		err = notAPeer(to)
	default:
		err = p.broken
	}
	if err == nil {
		msg.Tag = w.openCallLocked(c)
		if err = w.sendLocked(p, &msg); err != nil {
			w.endCallLocked(msg.Tag, c)
		}
	}
	w.RingPeersLocked()
	if err != nil {
		w.Unlock()
		return message.Message{}, err
	}
	w.GatherLocked()
	w.Unlock()
	n := wait.Need{Lease: &w.m.Lease, Ctx: ctx, What: fmt.Sprintf("an answer of machine %d", to), More: more}
	err = w.AwaitWithin(&c.wait, &n)
	if err == nil {
		return c.answer, nil
	}
	if n.IsOver(err) {
		w.Lock()
		defer w.Unlock()
		if c.wait.Open() == 0 { // the reply, or a failure, has come meanwhile
			return c.answer, c.wait.Failed()
		}
		c.unheard = true
	}
	return message.Message{}, err
}

// growStack gives the goroutine a stack of 16 KiB, as much as most shipped functions need. A new
// goroutine has 2 KiB, and Go would double them in the middle of the function, three times, moving
// all of its frames each time.
//
//go:noinline
func growStack() {
	var room [14 << 10]byte // together with the frames on the stack, more than 8 KiB and less than 16
	runtime.KeepAlive(&room)
}

// serve runs a shipped function.
func (m *Machine) serve(w *Worker, p *peer, msg message.Message) {
	fn := m.handler(HandlerID(msg.B))
	arg := append([]byte(nil), msg.Body...)
	m.Go(func() {
		growStack()
		reply := message.Message{Kind: message.Reply, Tag: msg.Tag}
		var result []byte
		var err error
		if fn == nil {
			err = noHandler(HandlerID(msg.B))
		} else {
			result, err = fn(context.Background(), arg)
		}
		if len(result) > m.MessageBodyMax() {
			err = fmt.Errorf("%w: a reply of %d bytes, the limit is %d", outcome.ErrTooLarge, len(result), m.MessageBodyMax())
		}
		reply.A, reply.Body = uint8(outcome.CodeOf(err)), result
		if err != nil {
			reply.Body = []byte(err.Error())
			reply.Body = reply.Body[:min(len(reply.Body), m.MessageBodyMax())]
		}
		w.Lock()
		if p.broken == nil {
			if err := w.sendLocked(p, &reply); err != nil {
				w.fenceLocked(p, err)
			}
		}
		w.RingPeersLocked()
		w.Unlock()
	})
}
