package call

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
)

// A call that is not answered is sent again after retryMin, then after twice
// that, and so on up to retryMax.
const (
	retryMin = 2 * time.Millisecond
	retryMax = 50 * time.Millisecond
)

// pending is a call that waits for its reply. Its fields are guarded by the
// endpoint's mu.
type pending struct {
	to      Peer
	kind    uint8
	started bool        // the other side has all its handlers
	event   clock.Event // set when the call is done
	done    bool
	refused error // the call fails with this if no better answer comes before the deadline
	reply   []byte
	err     error
	heard   time.Time // the last sign of life of the other side, or the beginning of the call
}

// finish ends the call; the first end counts.
func (p *pending) finish(reply []byte, err error) {
	if p.done {
		return
	}
	p.done, p.reply, p.err = true, reply, err
	p.event.Set()
}

// Call makes another machine handle arg, at most BytesMax bytes, and returns the reply. It sends the
// request again and again until it is answered or ctx ends. It does not wait for ctx's Done: before
// each request it checks Err, and compares Deadline with the clock. After any error the handler may
// still have run, or may run later.
//
// Errors: *RemoteError from the handler; ErrOtherLife if another life of the machine is there;
// protocol.ErrRange if the machine shares no protocol version with this one; ErrClosed, or the
// NIC's; ErrTooLong; and ctx's, together with ErrUnknownKind if the machine has answered that it has
// no handler.
func (e *Endpoint) Call(ctx context.Context, to Peer, kind uint8, arg []byte) ([]byte, error) {
	return e.call(ctx, &pending{to: to, kind: kind}, arg)
}

// CallStarted is Call, to a machine that has all its handlers: if it has none for this kind, its program
// does not know the call, and CallStarted fails at once with ErrUnknownKind.
func (e *Endpoint) CallStarted(ctx context.Context, to Peer, kind uint8, arg []byte) ([]byte, error) {
	return e.call(ctx, &pending{to: to, kind: kind, started: true}, arg)
}

// call makes the call p.
func (e *Endpoint) call(ctx context.Context, p *pending, arg []byte) ([]byte, error) {
	m, err := e.message(request, p.to, p.kind, arg)
	if err != nil {
		return nil, err
	}
	p.event, p.heard = e.clock.NewEvent(), e.clock.Now()
	e.mu.Lock()
	e.mu.pending[m.id] = p
	if e.mu.closed {
		p.finish(nil, ErrClosed)
	}
	e.mu.Unlock()

	err = e.sendUntilDone(ctx, p, m.encode())

	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.pending, m.id)
	switch {
	case p.done:
		return p.reply, p.err
	case p.refused != nil:
		return nil, fmt.Errorf("%w: %w", p.refused, err)
	}
	return nil, err
}

// sendUntilDone returns nil once the call is done, or the reason why it gave up.
func (e *Endpoint) sendUntilDone(ctx context.Context, p *pending, datagram []byte) error {
	pauseMax := e.pauseMax()
	for pause := min(retryMin, pauseMax); ; pause = min(2*pause, pauseMax) {
		if err := ctx.Err(); err != nil {
			return err
		}
		wait := pause
		if deadline, ok := ctx.Deadline(); ok {
			left := deadline.Sub(e.clock.Now())
			if left <= 0 {
				return context.DeadlineExceeded
			}
			wait = min(wait, left)
		}
		if err := e.nic.Datagram(p.to.Machine, datagram); err != nil {
			return fmt.Errorf("call: %w", err)
		}
		if sabotage.Repeat.Skipped() && wait < time.Hour {
			wait = time.Hour
		}
		if p.event.WaitFor(wait) {
			return nil
		}
		e.reportSilence(p)
	}
}

// Notify sends arg to the handler of another machine, once: it may be lost. It returns only errors
// that this side can detect: ErrTooLong, ErrClosed, the NIC's.
func (e *Endpoint) Notify(to Peer, kind uint8, arg []byte) error {
	m, err := e.message(notice, to, kind, arg)
	if err != nil {
		return err
	}
	if err := e.nic.Datagram(to.Machine, m.encode()); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	return nil
}

// message returns a message to be sent, with the next number.
func (e *Endpoint) message(typ messageType, to Peer, kind uint8, arg []byte) (message, error) {
	if len(arg) > BytesMax {
		return message{}, fmt.Errorf("%w: call %d has %d bytes", ErrTooLong, kind, len(arg))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.closed {
		return message{}, ErrClosed
	}
	e.mu.calls++
	return message{typ: typ, kind: kind, id: e.mu.calls, from: e.self.Incarnation, to: to.Incarnation, speaks: e.mu.speaks, body: arg}, nil
}

// receiveReply ends the call that the reply belongs to, or notes that the other side is alive. It drops
// replies that come late or twice, that are for an earlier life of this machine, that are of another kind
// or machine than the call, or that are from a life that was not called, unless they say so.
func (e *Endpoint) receiveReply(from rdma.MachineID, m message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.mu.pending[m.id]
	if p == nil || m.to != e.self.Incarnation || from != p.to.Machine || m.kind != p.kind {
		return
	}
	asked := p.to.Incarnation
	// A reply from a life that was not called must say otherLife, and no other reply may say so.
	if isOther := asked != AnyLife && asked != m.from; isOther != (m.status == otherLife) {
		return
	}
	// ErrOtherLife says more than ErrRange, and receiveRequest looks at the life first, too.
	if err := e.sharesVersionLocked(from, m); err != nil && m.status != otherLife {
		p.finish(nil, err)
		return
	}
	switch m.status {
	case ok:
		p.finish(slices.Clone(m.body), nil)
	case failed:
		p.finish(nil, e.decodeErrorLocked(m.body))
	case otherLife:
		p.finish(nil, fmt.Errorf("%w: machine %d", ErrOtherLife, from))
	case running:
		p.heard = e.clock.Now()
	case unknownKind:
		p.heard = e.clock.Now()
		p.refused = fmt.Errorf("%w: kind %d at machine %d", ErrUnknownKind, m.kind, from)
		if p.started {
			p.finish(nil, p.refused)
		}
	}
}
