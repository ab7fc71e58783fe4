package recovery

import (
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// PeerIn returns the life of machine m that is a member of c.
func PeerIn(c *cluster.Configuration, m rdma.MachineID) call.Peer {
	x, _ := c.Member(m)
	return call.Peer{Machine: m, Incarnation: x.Incarnation}
}

// IsMember reports whether this life of a machine is a member of c.
func IsMember(c *cluster.Configuration, p call.Peer) bool {
	x, ok := c.Member(p.Machine)
	return ok && x.Incarnation == p.Incarnation
}
