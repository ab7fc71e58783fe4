package membership

import (
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// deathPause divides the lease time into how long after its death a machine is
// suspected. Machines that are killed together die one after the other: without a
// pause those that die last would evict the first, which then have to be let in again.
const deathPause = 20

// onDeath is told that machine has died. Its lease will run out, which nobody has
// to wait for (SOSP'15 section 5.2 step 1: a suspicion is a lease that expires).
func (m *Machine) onDeath(machine rdma.MachineID) {
	m.mu.Lock()
	c := m.mu.current
	concerned := m.mu.phase.isMember() && (c.CM == m.self.Machine || c.CM == machine)
	m.mu.Unlock()
	if concerned {
		m.spawn(func() { m.suspectAfterDeath(machine) })
	}
}

// suspectAfterDeath suspects machine, unless it has come back. Its lease is left to run out if
// regions are unavailable without it: they cannot be used before it is back in any
// case, and those who kill all machines, one after the other, get more time.
func (m *Machine) suspectAfterDeath(machine rdma.MachineID) {
	m.waitFor(m.cfg.Keeper.Length()/deathPause, func() bool { return !m.mu.phase.isMember() })
	c := m.Configuration()
	// If the newest life is over so is the one that is a member.
	if _, in := c.Member(machine); in && m.cfg.NIC.Gone(machine) && !isLast(c, machine) {
		m.Suspect(machine)
	}
}

// isLast says whether c has regions that nobody but machine has all of.
func isLast(c *cluster.Configuration, machine rdma.MachineID) bool {
	_, report := c.Without([]rdma.MachineID{machine}, c.CM)
	return len(report.Unavailable) > 0
}
