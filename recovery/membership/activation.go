package membership

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// recoverTransactions makes the host recover the state of transactions, and reports its steps to the
// CM.
func (m *Machine) recoverTransactions(ctx context.Context, c *cluster.Configuration) {
	m.reached(recovery.StepCommitted)
	err := m.cfg.Host.Commit(ctx, c)
	switch {
	case ctx.Err() != nil: // a newer configuration has begun
	case err != nil:
		m.evict(fmt.Errorf("membership: commit configuration %d: %w", c.ID, err))
	default:
		m.tellCM(ctx, c, kindRegionsActive, m.onRegionsActive)
		if m.cfg.Host.Settle(ctx, c) == nil {
			m.tellCM(ctx, c, kindSettled, m.onSettled)
		}
	}
}

// tellCM reports to the CM of c that this machine has finished a step. If this machine is the CM, tellCM
// runs handler, the handler of such reports, instead.
func (m *Machine) tellCM(ctx context.Context, c *cluster.Configuration, kind uint8, handler call.Handler) {
	var err error
	if c.CM == m.self.Machine {
		_, err = handler(m.self, encodeID(c.ID))
	} else {
		_, err = m.cfg.Endpoint.Call(ctx, recovery.PeerIn(c, c.CM), kind, encodeID(c.ID))
	}
	if ctx.Err() == nil {
		m.cfg.Events.failed("report to the CM", err)
	}
}

// onRegionsActive records at the CM that all regions of a machine are active.
func (m *Machine) onRegionsActive(from call.Peer, arg []byte) ([]byte, error) {
	m.regionsActive(decodeID(arg), from)
	return nil, nil
}

// regionsActive records the report of one machine at the CM, and sends ALL-REGIONS-ACTIVE once
// all machines have reported. Reports that are late, or for another configuration, do not
// count.
func (m *Machine) regionsActive(id cluster.ID, from call.Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if !m.mu.phase.isRecovering() || c.ID != id || c.CM != m.self.Machine || !recovery.IsMember(c, from) {
		return
	}
	if m.mu.isActive == nil {
		m.mu.isActive = make(map[rdma.MachineID]bool)
	}
	m.mu.isActive[from.Machine] = true
	if len(m.mu.isActive) < len(c.Machines) {
		return
	}
	m.unlocked(func() { m.spawn(func() { m.sendAllActive(c) }) })
}

// sendAllActive makes the CM tell all members of c that all regions are active.
func (m *Machine) sendAllActive(c *cluster.Configuration) {
	m.mu.Lock()
	if !m.mu.phase.isRecovering() || m.mu.current.ID != c.ID {
		m.mu.Unlock()
		return
	}
	t := m.mu.timeline
	m.mu.Unlock()
	if t.ID == c.ID {
		t.AllActive = m.cfg.Clock.Now()
		m.cfg.Events.reconfigured(t)
	}
	m.all(c, func(ctx context.Context, _ int, p call.Peer) error {
		if p == m.self {
			return m.allActive(c.ID)
		}
		_, err := m.cfg.Endpoint.Call(ctx, p, kindAllRegionsActive, encodeID(c.ID))
		return err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leadLocked() // a machine may be waiting to join
}

// onAllRegionsActive records that all regions of all machines are active.
func (m *Machine) onAllRegionsActive(_ call.Peer, arg []byte) ([]byte, error) {
	return nil, m.allActive(decodeID(arg))
}

// allActive is ALL-REGIONS-ACTIVE at this machine. Repeating it changes nothing.
func (m *Machine) allActive(id cluster.ID) error {
	m.mu.Lock()
	c := m.mu.current
	isNew := m.mu.phase == committed && c.ID == id
	if isNew {
		m.enterLocked(active)
		m.wakeLocked()
	}
	m.mu.Unlock()
	if isNew {
		m.reached(recovery.StepAllActive)
		m.cfg.Host.Active(c)
	}
	return nil
}

// onSettled records at the CM that a machine has nothing left to recover.
func (m *Machine) onSettled(from call.Peer, arg []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if m.mu.phase.isMember() && c.ID == decodeID(arg) && c.CM == m.self.Machine && recovery.IsMember(c, from) {
		m.mu.isSettled[from.Machine] = true
		m.leadLocked() // a machine may be waiting to join
	}
	return nil, nil
}
