package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// stepPatience is how many lease times a machine that holds its lease may take for one step of a
// reconfiguration.
const stepPatience = 100

// distribute runs steps 5 to 7. If a machine is suspected meanwhile, it ends early, without an error:
// the next reconfiguration starts from the stored configuration.
func (m *Machine) distribute(c *cluster.Configuration, t Timeline) error {
	for {
		t.ID = c.ID
		m.proceed(sending)
		next, wait, err := m.sendNewConfig(c)
		if err != nil || wait < 0 {
			return err
		}
		if next != nil {
			c = next
			continue
		}
		t.Acked = m.cfg.Clock.Now()
		m.reached(recovery.StepAcked)
		m.proceed(expiring)
		if !sabotage.OldLeases.Skipped() {
			m.waitFor(wait, func() bool { return !m.mu.phase.isMember() })
		}
		m.reached(recovery.StepLeasesOver)
		return m.sendCommit(c, t)
	}
}

// sendNewConfig makes all members apply c. It returns how long old leases may still last, or a
// negative time if a machine is suspected meanwhile. If a machine has no room for the replicas that c
// gives it, next is a configuration that gives it fewer.
func (m *Machine) sendNewConfig(c *cluster.Configuration) (next *cluster.Configuration, wait time.Duration, err error) {
	own, err := m.applyConfiguration(c)
	if err != nil {
		return nil, 0, err
	}
	acks := make([]ack, len(c.Machines))
	parts := split(c)
	ok := m.all(c, func(ctx context.Context, i int, p call.Peer) error {
		if p == m.self {
			acks[i] = own
			return nil
		}
		var reply []byte
		for _, part := range parts {
			var err error
			if reply, err = m.cfg.Endpoint.Call(ctx, p, kindNewConfig, part); err != nil {
				return err
			}
		}
		return json.Unmarshal(reply, &acks[i])
	})
	if !ok && !sabotage.ConfigAcks.Skipped() {
		return nil, -1, nil
	}
	m.hear(c, acks)
	for i, a := range acks {
		wait = max(wait, a.Outstanding)
		refused := slices.DeleteFunc(a.Refused, func(id region.ID) bool {
			p, ok := c.Placement(id)
			return !ok || !slices.Contains(p.Filling, c.Machines[i]) // the CM did not ask for this replica
		})
		if len(refused) > 0 { // refuse one machine a round
			next, report := c.Refuse(c.Machines[i], refused)
			return next, 0, m.store(c, next, report)
		}
	}
	return nil, wait, nil
}

// sendCommit makes all members commit c.
func (m *Machine) sendCommit(c *cluster.Configuration, t Timeline) error {
	if sabotage.SlowRecovery.Skipped() {
		m.cfg.Clock.Sleep(3 * time.Second)
	}
	t.Committed = m.cfg.Clock.Now()
	m.mu.Lock()
	m.proceedLocked(committing)
	m.mu.timeline = t
	m.mu.unproven = 0
	m.mu.Unlock()
	m.all(c, func(ctx context.Context, _ int, p call.Peer) error {
		if p == m.self {
			return m.commit(c.ID)
		}
		_, err := m.cfg.Endpoint.Call(ctx, p, kindNewConfigCommit, encodeID(c.ID))
		return err
	})
	return nil
}

// all runs f for each member of c concurrently. It returns true when f has succeeded for all. It
// returns false, and ends f's context, as soon as a machine is suspected or this machine is no longer
// in c. It suspects a machine for which f fails, unless the error says that there is a newer
// configuration, or that this machine's endpoint is closed. A machine that works, but does not finish
// within stepPatience, fails so.
func (m *Machine) all(c *cluster.Configuration, f func(ctx context.Context, i int, p call.Peer) error) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left, deadline := len(c.Machines), m.cfg.Clock.Now().Add(stepPatience*m.cfg.Keeper.Length())
	isOver := func() bool {
		return !m.mu.phase.isMember() || m.mu.current.ID != c.ID ||
			slices.ContainsFunc(m.mu.suspects, func(p call.Peer) bool { return recovery.IsMember(c, p) })
	}
	for i, machine := range c.Machines {
		p := recovery.PeerIn(c, machine)
		m.spawn(func() {
			err := f(recovery.WithDeadline(ctx, deadline), i, p)
			if err != nil && ctx.Err() == nil && !errors.Is(err, recovery.ErrSuperseded) && !errors.Is(err, call.ErrClosed) {
				m.cfg.Events.failed(fmt.Sprintf("call of machine %d", machine), err)
				m.Suspect(machine)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if err == nil {
				left--
			}
			m.wakeLocked()
		})
	}
	for {
		var isDone, isEnded bool
		m.waitFor(m.patience(), func() bool { isDone, isEnded = left == 0, isOver(); return isDone || isEnded })
		if isDone || isEnded || m.Err() != nil {
			return isDone && !isEnded
		}
	}
}
