package membership

import (
	"github.com/farmsql/farmsql/cluster"
)

// hear records the members' reports about themselves. It drops reports that c would not admit, since
// no configuration with them could be stored. If the reports show that the instance can speak a higher
// protocol version, the next configuration follows at once. (A CM of an earlier program version does
// not pass on which versions the members speak; it may have been the last machine of its version.)
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

// agree adds the members' reports about themselves to a configuration that is about to be stored, and
// sets the instance's protocol version to one that all of them know.
func (m *Machine) agree(next *cluster.Configuration) error {
	next.Describe(m.cfg.Self)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, self := range m.mu.told { // any order: each report is about another member
		next.Describe(self)
	}
	return next.Agree()
}
