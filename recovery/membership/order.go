package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Move makes the instance move a replica, and the others of its group, as an operator orders. It
// returns once the move has begun, or has been made before. Moves that are under way, and replicas that
// are being filled, come first. Errors: cluster.ErrCannotMove, ctx's, and those for which IsPassing is
// true.
func (m *Machine) Move(ctx context.Context, o cluster.Order) error {
	if c := m.Configuration(); c != nil && !c.CanMove() {
		return c.CheckOrder(o) // a CM of an earlier program does not know the call
	}
	if err := m.askCM(ctx, kindMove, m.onMove, o, nil); err != nil {
		return err
	}
	return m.knows(func(c *cluster.Configuration) bool { return c.IsGranted(o) })
}

// knows returns when this machine knows, too, what the CM has granted: who has asked looks at this
// machine's status. If it does not hear of it, the request is made again (errChanging).
func (m *Machine) knows(isGranted func(*cluster.Configuration) bool) error {
	if !m.waitFor(m.patience(), func() bool { return !m.mu.phase.isMember() || isGranted(m.mu.current) }) {
		return errChanging
	}
	return nil
}

func (m *Machine) onMove(from call.Peer, arg []byte) ([]byte, error) {
	var o cluster.Order
	if err := json.Unmarshal(arg, &o); err != nil {
		return nil, fmt.Errorf("membership: MOVE: %w", err)
	}
	if err := m.beginOrder(from, o); err != nil {
		return nil, err
	}
	m.waitFor(m.patience(), func() bool { return !m.mu.phase.isMember() || !slices.Contains(m.mu.orders, o) })
	return nil, m.answerOrder(o)
}

// beginOrder makes the CM carry out an order, unless it does so already.
func (m *Machine) beginOrder(from call.Peer, o cluster.Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refusesLocked(from); err != nil {
		return err
	}
	if m.mu.current.IsGranted(o) {
		return nil
	}
	if err := m.mu.current.CheckOrder(o); err != nil {
		return err
	}
	if !slices.Contains(m.mu.orders, o) {
		m.mu.orders = append(m.mu.orders, o)
		m.leadLocked()
	}
	return nil
}

// answerOrder returns nil if an order is being carried out, or has been. Otherwise it drops the order:
// whoever has given it gives it again, and nothing moves for somebody who has been told that it does
// not.
func (m *Machine) answerOrder(o cluster.Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.orders = slices.DeleteFunc(m.mu.orders, func(x cluster.Order) bool { return x == o })
	c := m.mu.current
	switch {
	case !m.mu.phase.isMember():
		return recovery.ErrNotMember
	case c.IsGranted(o):
		return nil
	}
	if err := c.CheckOrder(o); err != nil {
		return err
	}
	if x := c.StandsStill(); x != "" {
		return fmt.Errorf("%w: the move waits for %s", errChanging, x)
	}
	return errChanging
}

// moveOn returns the configuration after base in which moves end, or others begin: those that operators
// order before the others. It drops orders that have become impossible since they came: who has given
// them is told.
func (m *Machine) moveOn(base *cluster.Configuration) (*cluster.Configuration, cluster.Remapped) {
	if next, report := base.EndMoves(); next != nil || !base.BeginsMoves() {
		return next, report
	}
	m.mu.Lock()
	orders := slices.Clone(m.mu.orders)
	m.mu.Unlock()
	for _, o := range orders {
		if next, report, err := base.Obey(o); err == nil {
			return next, report
		}
		m.mu.Lock()
		m.mu.orders = slices.DeleteFunc(m.mu.orders, func(x cluster.Order) bool { return x == o })
		m.wakeLocked()
		m.mu.Unlock()
	}
	return base.MoveOn(m.balances())
}
