package recovery

import (
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// withCalls takes suspects of c out of those that have answered a probe unless they answer a
// call, too: the memory of a process that is stopped can be read as before. A
// configuration with it would come to nothing, and another be made at once, for as
// long as it is stopped.
func (m *Membership) withCalls(c *cluster.Configuration, suspects []call.Peer, answered []rdma.MachineID) (alive, missing []rdma.MachineID) {
	lives := m.greet(c)
	for i, x := range c.Machines {
		isSuspect := slices.Contains(suspects, peerIn(c, x))
		answers := lives[i].Applied > 0 && lives[i].Member.Incarnation == c.Incarnation[i]
		if slices.Contains(answered, x) && (!isSuspect || answers) {
			alive = append(alive, x)
		} else {
			missing = append(missing, x)
		}
	}
	return alive, missing
}
