package call

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
)

// A Peer is one life of a machine.
type Peer struct {
	Machine     rdma.MachineID
	Incarnation uint64
}

// AnyLife, as the incarnation of a Peer, means whichever life is present.
const AnyLife uint64 = 0

// runningMax bounds how many handlers run at a time. Further calls are dropped; their callers send
// them again.
const runningMax = 1024

// A Handler answers calls of one kind. Several may run concurrently. It must be idempotent, because
// a call may arrive twice, and late. The handler owns arg. An error reaches the caller as a
// *RemoteError with the same text.
type Handler func(from Peer, arg []byte) (reply []byte, err error)

// An Endpoint makes and answers one machine's calls. It is safe for concurrent
// use.
type Endpoint struct {
	nic   rdma.NIC
	clock clock.Clock
	self  Peer
	idle  clock.Event // set when the endpoint is closed and the last handler has returned

	mu struct {
		lockrank.Mutex[lockrank.Leaf] // never held across a wait
		handlers                      [256]Handler
		known                         [256]error // the error for each code, or nil
		speaks                        protocol.Range
		calls                         uint64 // the number of calls made, which is the number of the last one
		pending                       map[uint64]*pending
		running                       map[callID]struct{}
		watch                         watch
		closed                        bool
	}
}

// A callID names a call among all that one endpoint handles.
type callID struct {
	from Peer
	id   uint64
}

// New returns an endpoint that uses the datagrams of nic; nothing else may use them from then on.
// incarnation, which must not be AnyLife, names this life of the machine. A call whose kind has no
// handler yet is repeated by its caller.
func New(nic rdma.NIC, c clock.Clock, incarnation uint64) *Endpoint {
	if incarnation == AnyLife {
		panic("call: an endpoint needs an incarnation")
	}
	e := &Endpoint{nic: nic, clock: c, self: Peer{nic.Machine(), incarnation}, idle: c.NewEvent()}
	e.mu.pending = make(map[uint64]*pending)
	e.mu.running = make(map[callID]struct{})
	e.mu.speaks = protocol.Own
	e.mu.known[codeRange] = protocol.ErrRange
	nic.Datagrams(e.receive)
	return e
}

// Self returns the machine and its incarnation.
func (e *Endpoint) Self() Peer { return e.self }

// Speak sets the range of protocol versions that the endpoint reports, in place of this program's.
// It must be called before anything is sent.
func (e *Endpoint) Speak(r protocol.Range) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.speaks = r
}

// Speaks returns the range of protocol versions that this machine speaks.
func (e *Endpoint) Speaks() protocol.Range {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.speaks
}

// sharesVersionLocked fails with protocol.ErrRange if the sender of m shares no protocol version
// with this machine.
func (e *Endpoint) sharesVersionLocked(from rdma.MachineID, m message) error {
	if e.mu.speaks.Stated().Overlaps(m.speaks.Stated()) {
		return nil
	}
	_, err := protocol.Common(protocol.Machine(e.self.Machine, e.mu.speaks), protocol.Machine(from, m.speaks))
	return fmt.Errorf("call: %w", err)
}

// Handle sets the handler of calls of a kind.
func (e *Endpoint) Handle(kind uint8, f Handler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.handlers[kind] = f
}

// codeRange is the code of protocol.ErrRange.
const codeRange = 1

// Know gives an error a code, so that it can be sent: if a handler's error matches err, a caller that
// knows the code gets an error that matches err, too. The code must be at least 2, and the same at
// all machines. If the handler's error matches several known errors, the smallest code is sent.
func (e *Endpoint) Know(code uint8, err error) {
	if code <= codeRange {
		panic("call: code 0 means an unknown error, code 1 protocol.ErrRange")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.known[code] = err
}

// Close ends the endpoint: pending calls fail with ErrClosed, and no handler starts any more. Close
// returns when the running handlers have returned, so a handler must not call it. The NIC stays
// open.
func (e *Endpoint) Close() {
	e.nic.Datagrams(nil)
	e.mu.Lock()
	e.mu.closed = true
	for _, id := range sorted(e.mu.pending) {
		e.mu.pending[id].finish(nil, ErrClosed)
	}
	running := len(e.mu.running)
	e.mu.Unlock()
	if running > 0 {
		e.idle.Wait()
		e.idle.Set() // lets a second call of Close return
	}
}

// sorted returns the keys in order, because the order of waking must not depend on a map.
func sorted(m map[uint64]*pending) []uint64 {
	return slices.Sorted(maps.Keys(m))
}

// receive is the NIC's receiver: it never waits.
func (e *Endpoint) receive(from rdma.MachineID, b []byte) {
	m, isMessage := decode(b)
	if !isMessage {
		return
	}
	if m.typ == reply {
		e.receiveReply(from, m)
		return
	}
	e.receiveRequest(Peer{from, m.from}, m)
}

// receiveRequest starts the handler, or answers that there is none.
func (e *Endpoint) receiveRequest(from Peer, m message) {
	if m.to != AnyLife && m.to != e.self.Incarnation && !sabotage.OtherLife.Skipped() {
		e.answer(from, m, otherLife, nil)
		return
	}
	e.mu.Lock()
	if err := e.sharesVersionLocked(from.Machine, m); err != nil {
		e.mu.Unlock()
		e.answer(from, m, failed, e.encodeError(err))
		return
	}
	handler := e.mu.handlers[m.kind]
	call := callID{from, m.id}
	_, isRunning := e.mu.running[call]
	starts := handler != nil && !isRunning && !e.mu.closed && len(e.mu.running) < runningMax
	if starts {
		e.mu.running[call] = struct{}{}
	}
	e.mu.Unlock()
	switch {
	case starts:
		m.body = slices.Clone(m.body)
		e.clock.Go(func() { e.run(handler, call, m) })
	case isRunning:
		e.answer(from, m, running, nil)
	case handler == nil:
		e.answer(from, m, unknownKind, nil)
	} // otherwise the endpoint is closed or busy: the caller asks again
}

// run handles one call, and answers it; but isClosed says why a closed endpoint sends no error.
func (e *Endpoint) run(handler Handler, call callID, m message) {
	defer e.ended(call)
	body, err := handler(call.from, m.body)
	if err == nil && len(body) > BytesMax {
		err = fmt.Errorf("%w: reply to call %d has %d bytes", ErrTooLong, m.kind, len(body))
	}
	switch {
	case err == nil:
		e.answer(call.from, m, ok, body)
	case !e.isClosed():
		e.answer(call.from, m, failed, e.encodeError(err))
	}
}

// isClosed reports whether this life is over. A handler may fail just because it is over, and then its
// error says nothing about the request. So a closed endpoint does not send the errors of handlers: the
// caller tries again, and finds the next life, or none.
func (e *Endpoint) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.closed
}

// ended forgets a call whose handler has returned. After the last one it wakes Close.
func (e *Endpoint) ended(call callID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.running, call)
	if e.mu.closed && len(e.mu.running) == 0 {
		e.idle.Set()
	}
}

// answer replies to request m. If the reply is lost, the caller repeats the request; if this NIC is
// closed, nothing more can be done.
func (e *Endpoint) answer(to Peer, m message, s status, body []byte) {
	if m.typ == notice {
		return
	}
	r := message{typ: reply, kind: m.kind, status: s, id: m.id, from: e.self.Incarnation, to: to.Incarnation, speaks: e.Speaks(), body: body}
	_ = e.nic.Datagram(to.Machine, r.encode())
}

// encodeError encodes a handler's error as a body: its code, or 0, and its text, cut if it is too
// long.
func (e *Endpoint) encodeError(err error) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	code := slices.IndexFunc(e.mu.known[:], func(known error) bool { return known != nil && errors.Is(err, known) })
	text := err.Error()
	return append([]byte{byte(max(code, 0))}, text[:min(len(text), BytesMax-1)]...)
}

func (e *Endpoint) decodeErrorLocked(body []byte) error {
	if len(body) == 0 {
		return &RemoteError{Text: "call: error without text"}
	}
	return &RemoteError{Text: string(body[1:]), Err: e.mu.known[body[0]]}
}
