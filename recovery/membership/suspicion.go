package membership

import (
	"context"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Suspect says that a lease of the machine has run out, that it has died, or that it
// cannot be reached. The CM suspects others, the others the CM; to the CM they report the
// rest. It begins a reconfiguration, and does not wait for it.
func (m *Machine) Suspect(machine rdma.MachineID) { m.suspect(machine, false) }

// Leave has this machine, which is about to stop, move the configuration on no more, and
// give nobody a reason to: it suspects nobody, and reports no link that is broken. Where all are
// stopped at once, the last ones would evict those that have stopped before.
func (m *Machine) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.leaving = true
}

// staysLocked says whether the machine is a member, and not about to stop. It guards whatever
// begins, asks for or stores a configuration; what takes part in one that is stored needs a
// member only.
func (m *Machine) staysLocked() bool { return m.mu.phase.isMember() && !m.mu.leaving }

func (m *Machine) stays() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.staysLocked()
}

// suspect notes a suspicion. asked says that another machine has asked this one
// to take the CM's place.
func (m *Machine) suspect(machine rdma.MachineID, asked bool) {
	if m.note(machine, asked) {
		m.cfg.Events.suspected(machine)
		m.reached(recovery.StepSuspected)
	}
}

// note is suspect; it is true if the machine was not suspected before.
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
	if c.CM != m.self.Machine && c.CM != machine {
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

// Renew says that this machine is not connected to another member, though nobody need
// have failed: it has the CM go on to the next configuration, in which the two connect
// anew. It does not wait for it.
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

// onUnreachable moves the CM on to the next configuration: without the machine that
// another could not reach if it does not answer a probe, and otherwise with it, in
// which both connect anew.
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
