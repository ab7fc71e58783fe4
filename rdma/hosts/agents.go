package hosts

import (
	"net"

	"github.com/farmsql/farmsql/rdma"
)

// An AgentID names an agent: by a worker of this machine, and by the machine whose sibling of
// that worker has connected.
type AgentID struct {
	From   rdma.MachineID
	Worker int
}

// An Agent is this machine's end of a connection that another machine has opened: through it
// the other machine's operations reach the memory of this machine.
type Agent interface {
	// Socket is the connection. When it is closed, the agent ends.
	Socket() net.Conn
	// Ended is closed when the agent has ended, and nothing more happens on its behalf.
	Ended() <-chan struct{}
}

// Agents are the agents of a machine.
type Agents[A Agent] map[AgentID]A

// Remove removes the agents for which match returns true, and returns them, for StopAll.
func (t Agents[A]) Remove(match func(id AgentID, a A) bool) (removed []A) {
	for id, a := range t {
		if match(id, a) {
			removed = append(removed, a)
			delete(t, id)
		}
	}
	return removed
}

// StopAll closes the connections of agents, and waits until the agents have ended.
func StopAll[A Agent](agents []A) {
	for _, a := range agents {
		_ = a.Socket().Close() // wakes the agent
	}
	for _, a := range agents {
		<-a.Ended()
	}
}
