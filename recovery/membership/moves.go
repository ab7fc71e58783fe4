package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// The CM moves replicas (cluster.Configuration.MoveOn): as operators order (order.go); to give
// regions the number of replicas that they should have (resize.go); away from machines that are
// being drained; and to machines that have fewer than others, such as one that has just joined.
// If the primaries are then uneven, the CM hands some of them over to machines with backups. It
// does all this only while there is nothing to recover, nobody waits to join, and nobody is
// about to stop: a move is never urgent, and each of its two configurations interrupts commits
// for a moment.

// The CM moves replicas and hands primaries over for the sake of balance only after a delay:
// the members must have been the same, and no primary handed over, for so long. A machine that
// stops is mostly back soon, with its memory, and what was moved meanwhile would have to move
// back. And a machine that makes many regions becomes uneven again and again: without a delay,
// commits would be interrupted as often.
const (
	// balanceDelay is the delay in lease times.
	balanceDelay = 100
	// lossDelay is the delay in lease times while members are missing: long enough for a host
	// to start again.
	lossDelay = 4000
)

// moves is what a machine knows about moves. All members keep it, since each may become the CM.
type moves struct {
	// changed is the time of the latest change of the members, or of the latest handing over of
	// primaries if that was later.
	changed time.Time
	most    int  // the largest number of members, not counting those that were drained and have left
	awaits  bool // a goroutine waits for balanceDelay or lossDelay
	holds   int  // how many calls of HoldMoves are not released
	// urgency is the urgency of the moves in the configuration with this revision. It takes a
	// while to compute, and the CM asks often.
	revision uint64
	urgency  cluster.Urgency
}

// noteMembers notes, before this machine applies next, how many members there are, and the time
// if next changes the members or hands primaries over. A member that leaves while it is drained
// leaves on purpose.
func (x *moves) noteMembers(current, next *cluster.Configuration, now time.Time) {
	if current != nil && slices.Equal(lease.Members(current), lease.Members(next)) && !next.HandsOver(current) {
		return
	}
	x.changed = now
	if current != nil {
		for _, id := range current.Machines {
			if _, stays := next.Member(id); !stays && current.IsDraining(id) {
				x.most--
			}
		}
	}
	x.most = max(x.most, len(next.Machines))
}

// movesLocked reports whether replicas are to move now. This machine must be the CM, with
// nothing left to recover. Nothing moves while a machine is about to stop, or a caller of HoldMoves has
// not released. If replicas must wait only for the delay, movesLocked makes the CM
// look again after it.
func (m *Machine) movesLocked() bool {
	x := &m.mu.moves
	if len(m.mu.leavers) > 0 || !m.mu.announced.IsZero() || (x.holds > 0 && !sabotage.HeldMoves.Skipped()) {
		return false
	}
	switch urgency := m.urgencyLocked(); {
	case urgency == cluster.AtOnce, len(m.ordersLocked()) > 0 && m.mu.current.BeginsMoves():
		return true
	case urgency == cluster.NothingMoves:
		return false
	}
	if m.balanceInLocked() > 0 {
		if !x.awaits {
			x.awaits = true
			m.spawnLocked(m.awaitBalance)
		}
		return false
	}
	return true
}

// urgencyLocked returns how urgent the moves of the current configuration are.
func (m *Machine) urgencyLocked() cluster.Urgency {
	x, c := &m.mu.moves, m.mu.current
	if x.revision != c.Revision {
		x.revision, x.urgency = c.Revision, c.Urgency()
	}
	return x.urgency
}

// balanceInLocked returns the time until replicas may move for the sake of balance.
func (m *Machine) balanceInLocked() time.Duration {
	x := &m.mu.moves
	delay := balanceDelay * m.cfg.Keeper.Length()
	if len(m.mu.current.Machines) < x.most {
		delay = lossDelay * m.cfg.Keeper.Length()
	}
	if m.cfg.BalanceDelay > 0 {
		delay = m.cfg.BalanceDelay
	}
	left := delay - m.cfg.Clock.Now().Sub(x.changed)
	if left <= 0 {
		x.most = len(m.mu.current.Machines) // a member that was missing for so long is not waited for any more
	}
	return max(0, left)
}

// balances reports whether the delay before moves for the sake of balance is over.
func (m *Machine) balances() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.balanceInLocked() == 0
}

// awaitBalance waits until replicas may move for the sake of balance, and then lets the CM look again.
func (m *Machine) awaitBalance() {
	for isOver := false; !isOver && m.Err() == nil; {
		m.mu.Lock()
		left, changed := m.balanceInLocked(), m.mu.moves.changed
		m.mu.Unlock()
		// Another change of the members sets another time. It may be an earlier one: when a
		// missing member is back, the shorter delay applies.
		m.waitFor(left, func() bool {
			isOver = !m.mu.phase.isMember() || m.balanceInLocked() == 0
			return isOver || m.mu.moves.changed != changed
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.moves.awaits = false
	m.leadLocked()
}

// HoldMoves makes this machine, as the CM, begin and end no moves, and hand over no primaries,
// until release is called. A change of the configuration that has begun goes on: see
// IsChanging.
func (m *Machine) HoldMoves() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.moves.holds++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mu.moves.holds--
		if m.mu.phase.isMember() {
			m.leadLocked()
		}
	}
}

// IsChanging reports whether this machine is moving the instance to another configuration.
func (m *Machine) IsChanging() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.leads || m.mu.stage != steady
}

// A refusal is the argument of REFUSE, which the CM keeps. It counts in its configuration only:
// in the next configuration the machine may have room.
type refusal struct {
	filling
	from call.Peer
}

// Refuse tells the CM that this machine has no room for replicas that it is being filled with
// and that their regions can do without: they move here, or were added by a resize, or are not
// needed any more. The CM ends these moves, the regions stay as they were, and the machine gets
// no replicas until HasRoom. Refuse does not wait for that. Errors: all for which IsPassing is
// true.
//
// A replica that its region needs cannot be refused so late: the CM would only begin to fill
// another elsewhere.
func (m *Machine) Refuse(ctx context.Context, in cluster.ID, regions []region.ID) error {
	return m.askCM(ctx, kindRefuse, m.onRefuse, filling{in, regions}, nil)
}

// onRefuse answers REFUSE, as the CM: it notes which replicas are refused, in place of those that the machine has
// refused before.
func (m *Machine) onRefuse(from call.Peer, arg []byte) ([]byte, error) {
	r := refusal{from: from}
	if err := json.Unmarshal(arg, &r.filling); err != nil {
		return nil, fmt.Errorf("membership: REFUSE: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	switch {
	case m.refusesLocked(from) != nil:
		return nil, m.refusesLocked(from)
	case r.In != c.ID:
		return nil, fmt.Errorf("%w: refused in configuration %d, this is %d", errChanging, r.In, c.ID)
	}
	r.Regions = slices.DeleteFunc(r.Regions, func(id region.ID) bool {
		p, _ := c.Placement(id)
		isNeedless := !c.NeedsFilling(&p) || (p.Move != nil && p.Move.To == from.Machine)
		return !isNeedless || !slices.Contains(p.Filling, from.Machine)
	})
	m.mu.refusals = slices.DeleteFunc(m.mu.refusals, func(x refusal) bool { return x.from == from })
	if len(r.Regions) > 0 {
		m.mu.refusals = append(m.mu.refusals, r)
		m.leadLocked()
	}
	return nil, nil
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

// drained returns the configuration after base that grants the request. A request that has
// become impossible since it came is dropped, and the machine that asked gets the error when it
// asks again.
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

// Drain makes the instance move all replicas away from a member, and give it no new ones. With
// undo, it makes the member an ordinary one again. Drain returns once a configuration says so;
// the replicas move afterwards. Errors: cluster.ErrCannotDrain, ctx's, and those for which
// IsPassing is true.
func (m *Machine) Drain(ctx context.Context, machine rdma.MachineID, undo bool) error {
	if c := m.Configuration(); c != nil && !c.CanMove() {
		if _, err := c.Drain(machine); err != nil { // a CM of an earlier program does not know the call
			return err
		}
	}
	r := drainRequest{machine, undo}
	if err := m.askCM(ctx, kindDrain, m.onDrain, r, nil); err != nil {
		return err
	}
	return m.knows(r.isOver)
}

// onDrain answers DRAIN, as the CM, once a configuration has what is asked for.
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
	return nil, m.answerDrain(r)
}

// answerDrain returns nil if a request is granted. If the machine has left before that, the
// request ended without being granted, and answerDrain returns an error: the machine has to be
// drained when it is back.
func (m *Machine) answerDrain(r drainRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	switch {
	case !m.mu.phase.isMember():
		return recovery.ErrNotMember
	case r.Undo || c.IsDraining(r.Machine):
		return nil
	}
	if _, err := c.Drain(r.Machine); err != nil {
		return err
	}
	return errChanging // the machine is back already: the caller asks again
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
