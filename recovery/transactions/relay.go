package transactions

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Two members may be unable to reach each other while neither can be evicted. Each member waits for
// the votes of all others, so without help no transaction would be decided. Therefore a call that
// stays unanswered for too long is made again through the CM, which both members reach.
//
//	RELAY    member --> CM     | to 16 | kind 8 | zero 8 | argument |
//	RELAYED  CM --> the other  | from 16 | kind 8 | zero 8 | argument |
const (
	kindRelay = kindConnect + 1 + iota
	kindRelayed
)

const relayHeaderBytes = 4

// encodeRelay returns the argument of a RELAY to m, or of a RELAYED from m.
func encodeRelay(m rdma.MachineID, kind uint8, arg []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(m))
	return append(append(b, kind, 0), arg...)
}

func decodeRelay(b []byte) (m rdma.MachineID, kind uint8, arg []byte, err error) {
	if len(b) < relayHeaderBytes+argumentHeaderBytes || b[2] < kindNeedRecovery || b[2] > kindPark {
		return 0, 0, nil, errBadCall
	}
	return rdma.MachineID(binary.LittleEndian.Uint16(b)), b[2], b[relayHeaderBytes:], nil
}

// ask makes a call to another member, through the CM if the member does not answer directly.
func (r *run) ask(to rdma.MachineID, kind uint8, arg []byte) ([]byte, error) {
	e, clk := r.t.cfg.Endpoint, r.t.cfg.Clock
	member, cm := recovery.PeerIn(r.c, to), recovery.PeerIn(r.c, r.c.CM)
	patience := 2 * e.Patience()
	if patience == 0 || r.c.CM == r.self || r.c.CM == to {
		return e.Call(r.ctx, member, kind, arg)
	}
	reply, err := e.Call(recovery.WithDeadline(r.ctx, clk.Now().Add(patience)), member, kind, arg)
	if errors.Is(err, context.DeadlineExceeded) && r.ctx.Err() == nil {
		return e.Call(recovery.WithDeadline(r.ctx, clk.Now().Add(patience)), cm, kindRelay, encodeRelay(to, kind, arg))
	}
	return reply, err
}

// onRelay passes a member's call on to another.
func (t *Recovery) onRelay(from call.Peer, b []byte) ([]byte, error) {
	to, kind, arg, err := decodeRelay(b)
	if err != nil {
		return nil, err
	}
	r := t.current(configurationOf(arg))
	if r == nil || r.c.CM != r.self || !recovery.IsMember(r.c, from) {
		return nil, recovery.ErrNotCM
	}
	if _, in := r.c.Member(to); !in || to == r.self {
		return nil, errBadCall
	}
	e := t.cfg.Endpoint
	ctx := recovery.WithDeadline(r.ctx, t.cfg.Clock.Now().Add(2*e.Patience()))
	return e.Call(ctx, recovery.PeerIn(r.c, to), kindRelayed, encodeRelay(from.Machine, kind, arg))
}

// onRelayed answers a call that the CM has passed on.
func (t *Recovery) onRelayed(cm call.Peer, b []byte) ([]byte, error) {
	from, kind, arg, err := decodeRelay(b)
	if err != nil {
		return nil, err
	}
	r := t.current(configurationOf(arg))
	if r == nil || recovery.PeerIn(r.c, r.c.CM) != cm {
		return nil, recovery.ErrNotCM
	}
	if _, in := r.c.Member(from); !in {
		return nil, recovery.ErrNotMember
	}
	return t.answer(kind, recovery.PeerIn(r.c, from), arg)
}
