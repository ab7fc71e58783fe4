package membership

import (
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// answering calls some members of c. It returns those that answer with the incarnation that they
// have in c, and this machine. A probe would not do, because the memory of a stopped process can still
// be read. If half the members of the next configuration were stopped, it could never be replaced: no
// majority would answer. Restarting them would not help, since a restarted member has another
// incarnation.
func (m *Machine) answering(c *cluster.Configuration, members []rdma.MachineID) (answer []rdma.MachineID) {
	for i, l := range m.askLivesOf(c, members) { // l is the life of c.Machines[i]
		isAlive := (l.Applied > 0 || l.Meets) && l.Member.Incarnation == c.Incarnation[i]
		if x := c.Machines[i]; isAlive || x == m.self.Machine {
			answer = append(answer, x)
		}
	}
	return answer
}

// unfit returns the members of c that must not be in the next configuration: members that have not
// answered a probe, and suspects that have not answered a call. A configuration with a stopped
// suspect would fail at once, and so would the next, again and again until the suspect continues.
func unfit(c *cluster.Configuration, suspects []call.Peer, probed, answering []rdma.MachineID) []rdma.MachineID {
	return slices.DeleteFunc(slices.Clone(c.Machines), func(x rdma.MachineID) (isFit bool) {
		if slices.Contains(suspects, recovery.PeerIn(c, x)) && !slices.Contains(answering, x) {
			return false
		}
		return slices.Contains(probed, x)
	})
}

// silent returns the members of c that do not answer a call.
func silent(c *cluster.Configuration, answering []rdma.MachineID) []rdma.MachineID {
	return slices.DeleteFunc(slices.Clone(c.Machines), func(x rdma.MachineID) bool { return slices.Contains(answering, x) })
}
