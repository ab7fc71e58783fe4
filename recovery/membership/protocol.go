package membership

import (
	"github.com/farmsql/farmsql/cluster"
)

// hear records what the members of c report of themselves, except for reports that c would not
// admit, since the next configuration could not be stored with them. If the instance can speak a
// higher protocol version now, the next configuration follows at once: a CM of an earlier program
// version has not passed on what they speak, and may have been the last machine of its version.
func (m *Machine) hear(c *cluster.Configuration, acks []ack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := c.Clone()
	for i, a := range acks {
		if a.Self.Machine == c.Machines[i] && a.Self.Incarnation == c.Incarnation[i] && c.Admits(a.Self) == nil {
			m.mu.told[c.Machines[i]] = a.Self
			next.Describe(a.Self)
		}
	}
	if next.Agree() == nil && next.Version() > c.Version() {
		m.mu.renew = true
		m.leadLocked()
	}
}

// agree completes a configuration that is about to be stored with what its members have reported of
// themselves, and sets the instance's protocol version to one that all of them know.
func (m *Machine) agree(next *cluster.Configuration) error {
	next.Describe(m.cfg.Self)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, self := range m.mu.told { // any order: each report is about another member
		next.Describe(self)
	}
	return next.Agree()
}
