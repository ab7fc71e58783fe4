package recovery

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/txn"
)

// A CONNECT call gives a member new logs and message queues to write to, and
// returns those that it offers in exchange: for a machine that has just joined,
// and where a connection broke although both sides are members.
//
//	| configuration 32 | zero 32 | attempt 64 | greeting |

const connectHeaderBytes = 16

// codeHeld is the code of txn.ErrHeld in calls.
const codeHeld = 64

// An exchange is the last one that a member began here.
type exchange struct {
	attempt uint64
	reply   []byte
}

// unconnected returns the members that this machine cannot write to.
func (r *run) unconnected() []rdma.MachineID {
	return slices.DeleteFunc(r.others(), r.m.Connected)
}

// connect connects to members that this machine cannot write to. One whose logs
// here, or ours there, are still being recovered is left for later.
func (r *run) connect() { r.t.parallel(r.unconnected(), r.connectTo) }

func (r *run) connectTo(to rdma.MachineID) {
	for !r.m.Connected(to) && r.ctx.Err() == nil {
		if err := r.exchange(to); err == nil || errors.Is(err, txn.ErrHeld) {
			return
		}
		pause := retryDelay
		if r.self > to {
			pause *= 4 // the other one's turn, if both have begun
		}
		r.t.cfg.Clock.Sleep(pause)
	}
}

// exchange exchanges greetings once. Of two members that begin at the same time
// the one with the lower number goes first.
func (r *run) exchange(to rdma.MachineID) error {
	t := r.t
	if !t.begin(to) {
		return errEarly
	}
	defer t.end(to)
	g, err := r.m.Listen(to)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(r.c.ID))
	b = binary.LittleEndian.AppendUint64(b, t.cfg.Clock.Uint64())
	reply, err := t.cfg.Endpoint.Call(r.ctx, peerIn(r.c, to), kindConnect, g.Append(b))
	if err != nil {
		return err
	}
	if g, err = txn.DecodeGreeting(reply); err != nil {
		return err
	}
	return r.m.Connect(to, g)
}

// begin says whether an exchange with a member may begin: none is going on.
func (t *Transactions) begin(with rdma.MachineID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.exchanging[with] {
		return false
	}
	t.mu.exchanging[with] = true
	return true
}

func (t *Transactions) end(with rdma.MachineID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.exchanging, with)
}

// onConnect answers CONNECT. The same attempt gets the same answer.
func (t *Transactions) onConnect(from call.Peer, arg []byte) ([]byte, error) {
	if len(arg) < connectHeaderBytes {
		return nil, errBadCall
	}
	r := t.current(configurationOf(arg))
	if r == nil || !memberIn(r.c, from) {
		return nil, errNotMember
	}
	attempt := binary.LittleEndian.Uint64(arg[8:])
	r.mu.Lock()
	drained := r.mu.drained
	r.mu.Unlock()
	if !drained {
		return nil, errEarly // what lies in the old logs has not been seen
	}
	t.mu.Lock()
	last := t.mu.exchanges[from.Machine]
	t.mu.Unlock()
	if last != nil && last.attempt == attempt {
		return last.reply, nil
	}
	g, err := txn.DecodeGreeting(arg[connectHeaderBytes:])
	if err != nil {
		return nil, err
	}
	if !t.begin(from.Machine) {
		return nil, errEarly
	}
	defer t.end(from.Machine)
	own, err := r.m.Listen(from.Machine)
	if err != nil {
		return nil, err
	}
	if err := r.m.Connect(from.Machine, g); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.mu.exchanges[from.Machine] = &exchange{attempt, own.Append(nil)}
	t.mu.Unlock()
	return own.Append(nil), nil
}
