package hosts

import (
	"net"

	"github.com/farmsql/farmsql/rdma"
)

// An AgentID names an agent: by the worker of this machine, and by the other machine, whose sibling of
// that worker has connected.
type AgentID struct {
	From   rdma.MachineID
	Worker int
}

// An Agent is the end of another machine's connection: on its behalf something happens in the memory of this machine.
type Agent interface {
	// Socket is the connection. When it is closed, the agent ends.
	Socket() net.Conn
	// Ended is closed when the agent has ended, and nothing more happens on its behalf.
	Ended() <-chan struct{}
}

// Agents are those of a machine.
type Agents[A Agent] map[AgentID]A

// Remove removes the agents that match, for StopAll.
func (t Agents[A]) Remove(match func(id AgentID, a A) bool) (removed []A) {
	for id, a := range t {
		if match(id, a) {
			removed = append(removed, a)
			delete(t, id)
		}
	}
	return removed
}

// StopAll ends the connections of agents and waits until these have ended.
func StopAll[A Agent](agents []A) {
	for _, a := range agents {
		_ = a.Socket().Close() // wakes the agent
	}
	for _, a := range agents {
		<-a.Ended()
	}
}
