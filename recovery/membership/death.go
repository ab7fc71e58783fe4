package membership

import (
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
)

// A machine is suspected 1/deathPause of the lease time after its death. Machines that are killed
// together die one after the other: without the pause, those that die last would evict those that
// died first, which would then have to join again.
const deathPause = 20

// onDeath is called when a machine's process has died. The paper suspects a machine when its lease
// expires (SOSP'15 section 5.2 step 1). Here the lease is certain to expire, so there is no need to
// wait for that.
func (m *Machine) onDeath(machine rdma.MachineID) {
	m.mu.Lock()
	c := m.mu.current
	concerned := m.mu.phase.isMember() && (c.CM == m.self.Machine || c.CM == machine)
	m.mu.Unlock()
	if concerned {
		m.spawn(func() { m.suspectAfterDeath(machine) })
	}
}

// suspectAfterDeath suspects machine, unless it has come back. If regions are unavailable without the
// machine, it lets the lease run out instead: an earlier suspicion would not make these regions
// usable, and an operator who kills all machines, one after the other, gets more time.
func (m *Machine) suspectAfterDeath(machine rdma.MachineID) {
	m.waitFor(m.cfg.Keeper.Length()/deathPause, func() bool { return !m.mu.phase.isMember() })
	c := m.Configuration()
	// If the machine's newest life is over, its life in c is over, too.
	if _, in := c.Member(machine); in && m.cfg.NIC.Gone(machine) && !isLast(c, machine) {
		m.Suspect(machine)
	}
}

// isLast reports whether c has a region whose only complete replica is at the given machine.
func isLast(c *cluster.Configuration, machine rdma.MachineID) bool {
	_, report := c.Without([]rdma.MachineID{machine}, c.CM)
	return len(report.Unavailable) > 0
}
