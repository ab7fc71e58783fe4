package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// The CM moves replicas: away from machines that are being drained, and to machines that have fewer
// than others, such as one that has just joined (cluster.Configuration.MoveOn). It does so only while
// there is nothing to recover, nobody waits to join, and nobody is about to stop: a move is never
// urgent, and each of its two configurations interrupts commits for a moment.

// balanceDelay is how many lease times the members must have been the same before regions move for
// the sake of balance. A machine that stops is mostly back soon, with its memory; what was moved
// meanwhile would have to move back.
const balanceDelay = 100

// moves is what the CM knows about moves.
type moves struct {
	changed time.Time // when the members of the current configuration became those that they are
	awaits  bool      // a goroutine waits for balanceDelay
	// due says whether MoveOn had something to do in this revision, dueToBalance whether MoveOn(true)
	// had: to find that out takes a while, and the CM asks often.
	revision          uint64
	due, dueToBalance bool
}

// movesLocked reports whether replicas are to move now. This machine is the CM, and nothing is left
// to recover. If only balanceDelay is in the way, the CM looks again when it is over.
func (m *Machine) movesLocked() bool {
	if len(m.mu.leavers) > 0 || !m.mu.announced.IsZero() {
		return false
	}
	x, c := &m.mu.moves, m.mu.current
	if x.revision != c.Revision {
		urgent, _ := c.MoveOn(false)
		any, _ := c.MoveOn(true)
		x.revision, x.due, x.dueToBalance = c.Revision, urgent != nil, any != nil
	}
	if x.due || !x.dueToBalance {
		return x.due
	}
	if !m.balancesLocked() && !x.awaits {
		x.awaits = true
		m.spawnLocked(m.awaitBalance)
	}
	return m.balancesLocked()
}

// balancesLocked reports whether replicas may move for the sake of balance.
func (m *Machine) balancesLocked() bool {
	return m.cfg.Clock.Now().Sub(m.mu.moves.changed) >= balanceDelay*m.cfg.Keeper.Length()
}

func (m *Machine) balances() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.balancesLocked()
}

// awaitBalance waits until replicas may move for the sake of balance, and then lets the CM look again.
func (m *Machine) awaitBalance() {
	isOver := func() bool { return !m.mu.phase.isMember() || m.balancesLocked() }
	for !m.waitFor(balanceDelay*m.cfg.Keeper.Length(), isOver) && m.Err() == nil { // the members may change meanwhile
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.moves.awaits = false
	m.leadLocked()
}

// A drainRequest is the argument of DRAIN.
type drainRequest struct {
	Machine rdma.MachineID
	Undo    bool
}

// isOver reports whether there is nothing left to do for a request in c.
func (r drainRequest) isOver(c *cluster.Configuration) bool {
	if r.Undo {
		return c.Undrain(r.Machine) == c
	}
	_, isMember := c.Member(r.Machine)
	return !isMember || c.IsDraining(r.Machine)
}

// drained returns the configuration after base that grants a request. If the request has become
// impossible since it came, it is dropped: the machine that has asked is told when it asks again.
func (m *Machine) drained(base *cluster.Configuration, r drainRequest) (*cluster.Configuration, error) {
	if r.Undo {
		return base.Undrain(r.Machine), nil
	}
	next, err := base.Drain(r.Machine)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.drains = slices.DeleteFunc(m.mu.drains, func(x drainRequest) bool { return x == r })
	}
	return next, err
}

// Drain makes the instance move all replicas away from a member, and give it no others; with undo, it
// makes it a machine like the others again. Drain returns once a configuration says so; the replicas
// move afterwards. Errors: cluster.ErrCannotDrain, ctx's, and those for which IsPassing is true.
func (m *Machine) Drain(ctx context.Context, machine rdma.MachineID, undo bool) error {
	if c := m.Configuration(); c != nil && !c.CanMove() {
		if _, err := c.Drain(machine); err != nil { // a CM of an earlier program does not know the call
			return err
		}
	}
	return m.askCM(ctx, kindDrain, m.onDrain, drainRequest{machine, undo}, nil)
}

func (m *Machine) onDrain(from call.Peer, arg []byte) ([]byte, error) {
	var r drainRequest
	if err := json.Unmarshal(arg, &r); err != nil {
		return nil, fmt.Errorf("membership: DRAIN: %w", err)
	}
	if err := m.beginDrain(from, r); err != nil {
		return nil, err
	}
	if !m.waitFor(m.patience(), func() bool { return !m.mu.phase.isMember() || r.isOver(m.mu.current) }) {
		return nil, errChanging // the caller makes the call again
	}
	return nil, nil
}

// beginDrain makes the CM begin a configuration that grants the request, unless it is granted already.
func (m *Machine) beginDrain(from call.Peer, r drainRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if !m.mu.phase.isMember() || c.CM != m.self.Machine {
		return recovery.ErrNotCM
	}
	if !recovery.IsMember(c, from) {
		return recovery.ErrNotMember
	}
	if !r.Undo {
		if _, err := c.Drain(r.Machine); err != nil {
			return err
		}
	}
	m.mu.drains = slices.DeleteFunc(m.mu.drains, func(x drainRequest) bool { return x.Machine == r.Machine })
	if !r.isOver(c) {
		m.mu.drains = append(m.mu.drains, r)
		m.leadLocked()
	}
	return nil
}
