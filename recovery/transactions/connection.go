package transactions

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/worker"
)

// CONNECT exchanges greetings: each offers the other member new logs and message queues to write to.
// Members call it when one of them has just joined, and when their connection broke although both
// are still members.
//
//	| configuration 32 | zero 32 | number 64 | greeting |
//
// and the reply
//
//	| number 64 | greeting |
//
// A greeting is valid until its machine makes the next one for the same member. Calls may
// arrive late or twice. So a machine numbers the exchanges that it begins, in ascending order
// through its life. The other side ignores a greeting with a lower number than it has seen from
// the same life. Greetings are encoded in the protocol version that the two machines speak,
// which both know from the configuration.
const (
	connectHeaderBytes = 16
	connectReplyBytes  = 8
)

// codeHeld is the code of worker.ErrHeld in calls.
const codeHeld = 64

// An exchange is the latest exchange that a life of a member has begun.
type exchange struct {
	incarnation uint64
	number      uint64
	reply       []byte // nil if the exchange was refused, or has not been answered yet
}

// unconnected returns the members that this machine could not write to at Freeze, and still cannot.
// It leaves out members to which a connection has broken since: their unread records in the logs
// here are evidence for the next configuration's recovery, not for this one's.
func (r *run) unconnected() []rdma.MachineID {
	return slices.DeleteFunc(slices.Clone(r.apart), r.hasConnected)
}

func (r *run) hasConnected(to rdma.MachineID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.connected[to]
}

// connectWith connects to the log and queue that a member offers in its greeting.
func (r *run) connectWith(to rdma.MachineID, g message.Greeting) error {
	if err := r.m.Connect(to, g); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.connected[to], r.mu.tried[to] = true, true
	return nil
}

// connect connects to members that this machine cannot write to. Before the recovery is settled
// here, it skips members that refuse with worker.ErrHeld because recovery still needs the old logs
// between the two. It fails if ctx ends: members that have evicted this machine never answer.
func (r *run) connect(ctx context.Context) error {
	r.t.parallel(r.unconnected(), func(to rdma.MachineID) { r.connectTo(ctx, to) })
	return ctx.Err()
}

// connectTo exchanges greetings with one member, again and again, until the two are connected, the
// member has to be postponed, or ctx ends.
func (r *run) connectTo(ctx context.Context, to rdma.MachineID) {
	for !r.hasConnected(to) && ctx.Err() == nil {
		err := r.exchange(ctx, to)
		r.mu.Lock()
		isSettled := r.mu.state == settled
		isOver := err == nil || (errors.Is(err, worker.ErrHeld) && !isSettled)
		r.mu.tried[to] = r.mu.tried[to] || isOver
		r.mu.Unlock()
		if isOver {
			r.wake()
			return
		}
		r.mu.Lock()
		r.mu.refused = fmt.Errorf("connect to machine %d: %w", to, err)
		r.mu.Unlock()
		pause := retryDelay
		if r.self > to {
			pause *= 4 // if both machines have begun an exchange, let the other one try first
		}
		r.t.cfg.Clock.Sleep(pause)
	}
}

// exchange exchanges greetings once, unless the two members are connected already: Listen would end
// the existing connection, and the other member might refuse a second one. If both begin at the same
// time, the member with the higher machine number pauses longer before it tries again.
func (r *run) exchange(ctx context.Context, to rdma.MachineID) error {
	t := r.t
	number, ok := t.begin(r, to)
	if !ok {
		return errEarly
	}
	defer t.end(to)
	if r.hasConnected(to) {
		return nil // the member's exchange has connected the two meanwhile
	}
	version, err := r.c.Between(r.self, to)
	if err != nil {
		return err
	}
	own, err := r.m.Listen(to)
	if err != nil {
		return err
	}
	arg := binary.LittleEndian.AppendUint64(nil, uint64(r.c.ID))
	arg = binary.LittleEndian.AppendUint64(arg, number)
	peer := recovery.PeerIn(r.c, to)
	reply, err := t.cfg.Endpoint.Call(ctx, peer, kindConnect, own.Append(arg, version))
	if err != nil {
		return err
	}
	if len(reply) < connectReplyBytes {
		return errBadCall
	}
	if !t.note(r, peer, binary.LittleEndian.Uint64(reply)) {
		return errEarly // the peer has begun another exchange meanwhile
	}
	g, err := message.DecodeGreeting(reply[connectReplyBytes:], version)
	if err != nil {
		return err
	}
	return r.connectWith(to, g)
}

// begin numbers an exchange with a member. It returns false if an exchange with that member is in
// progress, or r is not the current run.
func (t *Recovery) begin(r *run, with rdma.MachineID) (number uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.exchanging[with] || t.mu.run != r {
		return 0, false
	}
	t.mu.exchanging[with] = true
	t.mu.begun++
	return t.mu.begun, true
}

// end allows the next exchange with a member.
func (t *Recovery) end(with rdma.MachineID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.exchanging, with)
}

// note records the number of a member's exchange. It returns false if the number is not higher than
// all before of the same life, or r is not the current run.
func (t *Recovery) note(r *run, from call.Peer, number uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.mu.exchanges[from.Machine]
	if t.mu.run != r || (last != nil && last.incarnation == from.Incarnation && last.number >= number) {
		return false
	}
	t.mu.exchanges[from.Machine] = &exchange{incarnation: from.Incarnation, number: number}
	return true
}

// keepAnswer keeps the answer to a member's exchange, if that is still the member's latest exchange.
func (t *Recovery) keepAnswer(from call.Peer, number uint64, reply []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.mu.exchanges[from.Machine]; x.incarnation == from.Incarnation && x.number == number {
		x.reply = reply
	}
}

// answerTo returns the answer that was kept for a member's exchange, or nil.
func (t *Recovery) answerTo(from call.Peer, number uint64) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.mu.exchanges[from.Machine]; x != nil && x.incarnation == from.Incarnation && x.number == number {
		return x.reply
	}
	return nil
}

// onConnect answers CONNECT. A repeated exchange has no effect and gets the earlier answer, if there
// was one; an outdated exchange is refused.
func (t *Recovery) onConnect(from call.Peer, arg []byte) ([]byte, error) {
	if len(arg) < connectHeaderBytes {
		return nil, errBadCall
	}
	r := t.current(configurationOf(arg))
	if r == nil || !recovery.IsMember(r.c, from) {
		return nil, recovery.ErrNotMember
	}
	number := binary.LittleEndian.Uint64(arg[8:])
	if !t.note(r, from, number) {
		if reply := t.answerTo(from, number); reply != nil {
			return reply, nil
		}
		return nil, errEarly
	}
	if !r.has(drained) {
		return nil, errEarly // the records in the old logs have not been read yet
	}
	version, err := r.c.Between(r.self, from.Machine)
	if err != nil {
		return nil, err
	}
	g, err := message.DecodeGreeting(arg[connectHeaderBytes:], version)
	if err != nil {
		return nil, err
	}
	reply, err := r.accept(from.Machine, g, version)
	if err == nil {
		t.keepAnswer(from, number, reply)
	}
	return reply, err
}

// accept connects to the logs and queues that a member offers, and returns this machine's own logs
// and queues, for the member to write to.
func (r *run) accept(from rdma.MachineID, g message.Greeting, version protocol.Version) ([]byte, error) {
	number, ok := r.t.begin(r, from)
	if !ok {
		return nil, errEarly
	}
	defer r.t.end(from)
	own, err := r.m.Listen(from)
	if err != nil {
		return nil, err
	}
	if err := r.connectWith(from, g); err != nil {
		return nil, err
	}
	return own.Append(binary.LittleEndian.AppendUint64(nil, number), version), nil
}
