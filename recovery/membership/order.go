package membership

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma/call"
)

// An orderRequest is an order that the CM keeps.
type orderRequest struct {
	cluster.Order
	until time.Time // the CM drops the order at this time, unless it is given again
}

// orderWaitMax bounds orderWait.
const orderWaitMax = time.Second

// orderWait returns how long an order may take to begin before the CM answers with what the
// order waits for. The CM keeps the order for twice as long.
func (m *Machine) orderWait() time.Duration { return min(m.patience(), orderWaitMax) }

// Move makes the instance move a replica, and the others of its group, as an operator orders.
// It returns once the move has begun, or has been made before. Moves that have begun, and
// replicas that are being filled, come first: Move then fails soon with an error that says what
// the order waits for, and the caller repeats it. The move may still begin up to twice
// orderWait after the last attempt. Errors: cluster.ErrCannotMove, ctx's, and those for which
// IsPassing is true.
func (m *Machine) Move(ctx context.Context, o cluster.Order) error {
	c := m.Configuration()
	if c != nil && !c.CanMove() {
		return c.CheckOrder(o) // a CM of an earlier program does not know the call
	}
	err := m.askCM(ctx, kindMove, m.onMove, o, nil)
	if errors.Is(err, call.ErrUnknownKind) {
		return fmt.Errorf("%w: machine %d, the configuration manager, runs an earlier program, which takes no orders: start it with this one", cluster.ErrCannotMove, c.CM)
	}
	if err != nil {
		return err
	}
	return m.knows(func(c *cluster.Configuration) bool { return c.IsGranted(o) })
}

// knows returns nil once this machine, too, has the configuration in which the CM has granted a
// request: the caller may look at this machine's status next. If that configuration does not
// come, the error is errChanging, and the request is made again.
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
	m.waitFor(m.orderWait(), func() bool { return !m.mu.phase.isMember() || !hasOrder(m.mu.orders, o) })
	return nil, m.answerOrder(from, o)
}

// beginOrder makes the CM carry out an order as soon as nothing else is in the way, unless it
// does so already. The CM keeps the order for longer than the caller waits for the answer. The
// caller gives the order again and again; without that, balance or a drain would go on in the
// gaps between.
func (m *Machine) beginOrder(from call.Peer, o cluster.Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isGranted, err := m.checkOrderLocked(from, o); isGranted || err != nil {
		return err
	}
	m.dropOrderLocked(o)
	m.mu.orders = append(m.mu.orders, orderRequest{o, m.cfg.Clock.Now().Add(2 * m.orderWait())})
	m.leadLocked()
	return nil
}

// checkOrderLocked reports whether an order is being carried out, or has been. It fails if the order cannot be
// carried out.
func (m *Machine) checkOrderLocked(from call.Peer, o cluster.Order) (isGranted bool, err error) {
	if err := m.refusesLocked(from); err != nil {
		return false, err
	}
	if m.mu.current.IsGranted(o) {
		return true, nil
	}
	return false, m.mu.current.CheckOrder(o)
}

func hasOrder(requests []orderRequest, o cluster.Order) bool {
	return slices.ContainsFunc(requests, func(r orderRequest) bool { return r.Order == o })
}

func (m *Machine) dropOrderLocked(o cluster.Order) {
	m.mu.orders = slices.DeleteFunc(m.mu.orders, func(r orderRequest) bool { return r.Order == o })
}

// ordersLocked returns the orders that the CM is to carry out. It drops those that nobody has given again.
func (m *Machine) ordersLocked() []orderRequest {
	now := m.cfg.Clock.Now()
	m.mu.orders = slices.DeleteFunc(m.mu.orders, func(r orderRequest) bool { return r.until.Before(now) })
	return m.mu.orders
}

// answerOrder returns nil if an order is being carried out, or has been, and otherwise why it is not.
func (m *Machine) answerOrder(from call.Peer, o cluster.Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isGranted, err := m.checkOrderLocked(from, o); isGranted || err != nil {
		return err
	}
	return fmt.Errorf("%w for %s", errWaits, m.movesAwaitLocked())
}

// anotherChange is the reason why moves wait while the CM makes another change.
const anotherChange = "another change of the configuration"

// movesAwaitLocked returns the reason why the CM does not begin a wanted move.
func (m *Machine) movesAwaitLocked() string { return cmp.Or(m.movesHeldLocked(), anotherChange) }

// movesHeldLocked returns what keeps the CM from moving anything, or "" if nothing does.
func (m *Machine) movesHeldLocked() string {
	switch busy := m.mu.current.StandsStill(); {
	case busy != "":
		return busy
	case !m.isSettledLocked():
		return "transactions that are being recovered"
	case len(m.mu.leavers) > 0 || !m.mu.announced.IsZero():
		return "a machine that is about to stop"
	case m.mu.moves.holds > 0:
		return "a check that compares replicas"
	case m.mu.leads:
		return anotherChange
	}
	return ""
}

// moveOn returns the configuration after base in which moves end or, if none ends, others
// begin: first those that operators ordered. It drops orders that have become impossible since
// they came; their callers get the error.
func (m *Machine) moveOn(base *cluster.Configuration) (*cluster.Configuration, cluster.Remapped) {
	if next, report := base.EndMoves(); next != nil {
		return next, report
	}
	var orders []orderRequest
	if base.BeginsMoves() {
		m.mu.Lock()
		orders = slices.Clone(m.ordersLocked())
		m.mu.Unlock()
	}
	for _, r := range orders {
		if next, report, err := base.Obey(r.Order); err == nil {
			return next, report
		}
		m.mu.Lock()
		m.dropOrderLocked(r.Order)
		m.wakeLocked()
		m.mu.Unlock()
	}
	return base.MoveOn(m.balances())
}
