package membership

import (
	"github.com/farmsql/farmsql/cluster"
)

// hear records what the members of c say of themselves, but not what c would not admit: the
// next configuration could not be stored with it. If the instance can speak a higher version
// now, the next configuration follows at once: a CM of an earlier version has not passed on
// what they speak, and may have been the last of its kind.
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

// agree completes a configuration that is about to be stored with what its members say of
// themselves, and has the instance speak what all of them know.
func (m *Machine) agree(next *cluster.Configuration) error {
	next.Describe(m.cfg.Self)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, self := range m.mu.told { // any order: each is about one member
		next.Describe(self)
	}
	return next.Agree()
}
