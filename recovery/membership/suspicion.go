package membership

import (
	"context"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Suspect is called when a machine's lease has run out, it has died, or it cannot be reached. It
// begins a reconfiguration, and does not wait for it. The CM suspects any machine. Other machines
// suspect only the CM, and report other suspicions to the CM.
func (m *Machine) Suspect(machine rdma.MachineID) { m.suspect(machine, false) }

// suspect records a suspicion. asked says that another machine has asked this one to take the CM's
// place.
func (m *Machine) suspect(machine rdma.MachineID, asked bool) {
	if m.note(machine, asked) {
		m.cfg.Events.suspected(machine)
		m.reached(recovery.StepSuspected)
	}
}

// note does the work of suspect; it returns true if the machine was not suspected before.
func (m *Machine) note(machine rdma.MachineID, asked bool) (isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if !m.staysLocked() || machine == m.self.Machine {
		return false
	}
	p := recovery.PeerIn(c, machine)
	if !recovery.IsMember(c, p) {
		return false
	}
	if c.CM != m.self.Machine && c.CM != machine { // only the CM may suspect that machine: report to it
		m.unlocked(func() {
			if m.noteApart(p, true) {
				m.Renew()
			}
		})
		return false
	}
	if asked {
		m.mu.asked = c.ID
	}
	if isNew = !slices.Contains(m.mu.suspects, p); isNew {
		if len(m.mu.suspects) == 0 {
			m.mu.since = m.cfg.Clock.Now()
		}
		m.mu.suspects = append(m.mu.suspects, p)
	}
	m.wakeLocked()
	m.leadLocked()
	return isNew
}

// Renew is called when this machine has no connection to another member, although neither may have
// failed: it makes the CM go on to the next configuration, in which the two connect anew. It does
// not wait for that.
func (m *Machine) Renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	switch {
	case !m.staysLocked():
	case c.CM != m.self.Machine:
		m.reportLocked(c)
	default:
		m.mu.renew = true
		m.leadLocked()
	}
}

// reportLocked tells the CM that this machine cannot reach another, once in each
// configuration.
func (m *Machine) reportLocked(c *cluster.Configuration) {
	if m.mu.reported == c.ID {
		return
	}
	m.mu.reported = c.ID
	m.unlocked(func() {
		m.spawn(func() {
			_, err := m.cfg.Endpoint.Call(during{context.Background(), m, c.ID}, recovery.PeerIn(c, c.CM), kindUnreachable, encodeID(c.ID))
			if !IsPassing(err) {
				m.cfg.Events.failed("report to the CM", err)
			}
		})
	})
}

// onUnreachable makes the CM go on to the next configuration. If the unreachable machine does not
// answer a probe, it is left out there; otherwise the two machines connect again.
func (m *Machine) onUnreachable(from call.Peer, arg []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current
	if m.mu.phase.isMember() && c.ID == decodeID(arg) && c.CM == m.self.Machine && recovery.IsMember(c, from) {
		m.mu.renew = true
		m.leadLocked()
	}
	return nil, nil
}
