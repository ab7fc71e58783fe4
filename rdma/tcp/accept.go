package tcp

import (
	"fmt"
	"net"
	"time"

	"github.com/farmsql/farmsql/rdma/hosts"
)

const (
	workersMax = 1 << 16
	// silenceMax is how long the other host may leave bytes unacknowledged, or keep-alive probes
	// unanswered.
	silenceMax = 5 * time.Second
	// retryAfter is how long receiving pauses when the socket has an error.
	retryAfter = 10 * time.Millisecond
)

// welcome reads the purpose of an accepted connection from its greeting, and serves the connection. It
// calls known when it has read the greeting, or has failed to.
func (nic *NIC) welcome(accepted net.Conn, known func()) {
	socket := hosts.SocketOf(accepted)
	defer socket.Close()
	if !nic.sockets.Keep(socket, nic.cfg.Machine) {
		known()
		return
	}
	defer nic.sockets.Drop(socket)
	stream, g, err := hosts.Hear(nic.ctx, &nic.security, accepted, protocol.ReadGreeting)
	known()
	if err == nil {
		err = nic.serve(socket, stream, g)
	}
	if err != nil && nic.cfg.Refused != nil {
		nic.cfg.Refused(socket.RemoteAddr(), err)
	}
}

// serve answers a greeting, and serves the connection for its purpose. An error says why the
// connection was refused, or ended.
func (nic *NIC) serve(socket, stream net.Conn, g hosts.Greeting) error {
	r := hosts.Reply{Refusal: nic.refuses(stream, g), Life: nic.life}
	if r.Refusal == hosts.Accepted && nic.isTwin(g) {
		r.Refusal = hosts.Twin
	}
	var a *agent
	if r.Refusal == hosts.Accepted && g.Purpose == operations {
		a, r.Refusal = nic.admit(socket, stream, g)
	}
	if a != nil {
		defer close(a.ended)
		defer nic.dismiss(a)
	}
	if r.Refusal == hosts.Accepted && g.Purpose != operations && !nic.isNewest(g) { // for operations, admit has checked it
		r.Refusal = hosts.Outdated
	}
	var key []byte
	if r.Refusal == hosts.Accepted && g.Purpose == keysOfLine {
		key, r.Refusal = nic.line.handOut(g.From)
	}
	if r.Refusal == hosts.Accepted {
		nic.addresses.Learn(g)
	}
	answer := protocol.EncodeReply(r)
	if r.Refusal == hosts.Accepted && g.Purpose == keysOfDatagrams {
		key = nic.mail.handOut(g.From)
	}
	answer = append(answer, key...)
	if _, err := stream.Write(answer); err != nil {
		return nil // the other side has left
	}
	if r.Refusal != hosts.Accepted {
		return fmt.Errorf("machine %d: %w", g.From, hosts.Refusals[r.Refusal])
	}
	if a != nil {
		return a.run()
	}
	return nil
}

// refuses returns why a greeting is refused, or hosts.Accepted. It does not look at the sender's life.
func (nic *NIC) refuses(stream net.Conn, g hosts.Greeting) hosts.Refusal {
	switch {
	case g.Cluster != nic.cfg.Cluster:
		return hosts.OtherCluster
	case g.To != nic.cfg.Machine || g.From == nic.cfg.Machine:
		return hosts.OtherMachine
	case g.Purpose > keysOfLine, g.Purpose == keysOfLine && nic.line == nil:
		return hosts.UnknownPurpose
	case nic.isCut(g.From):
		return hosts.Leaving
	}
	if nic.security.Permit(stream, g.From) != nil {
		return hosts.NotAuthorized
	}
	return hosts.Accepted
}

// admit makes the agent of a connection, and stops the agents that it replaces: when admit returns,
// they copy nothing more.
func (nic *NIC) admit(socket, stream net.Conn, g hosts.Greeting) (*agent, hosts.Refusal) {
	id := hosts.AgentID{From: g.From, Worker: int(g.Worker)}
	c := nic.memories.Copier()
	nic.mu.Lock()
	q := nic.mu.queues[id.Worker]
	if r := nic.admitsLocked(id, q, g); r != hosts.Accepted {
		nic.mu.Unlock()
		c.End()
		return nil, r
	}
	former := nic.mu.agents.Remove(func(old hosts.AgentID, a *agent) bool {
		return old == id || (old.From == id.From && a.life != g.Life)
	})
	a := newAgent(c, q, socket, stream, id, g)
	nic.mu.agents[id] = a
	nic.mu.Unlock()
	hosts.StopAll(former)
	return a, hosts.Accepted
}

// admitsLocked returns why there can be no agent for a greeting, or hosts.Accepted. It notes the greeting's
// life, if that is the newest.
func (nic *NIC) admitsLocked(id hosts.AgentID, q *Queue, g hosts.Greeting) hosts.Refusal {
	present := nic.mu.agents[id]
	switch {
	case nic.mu.closed || nic.mu.cut[id.From]:
		return hosts.Leaving
	case q == nil:
		return hosts.NoWorker
	case !nic.isNewestLocked(g), present != nil && present.life == g.Life && g.IsBefore(present.dial):
		return hosts.Outdated
	}
	return hosts.Accepted
}

// isTwin reports whether a greeting comes from a new life of a machine, at another address, while the
// machine's earlier life is connected. Then two processes were started as one machine, and the new one
// must not take the place of the other. If the earlier process has died, its connections end, at the
// latest after some silence. Two processes of one host cannot have the same address.
func (nic *NIC) isTwin(g hosts.Greeting) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	life := nic.mu.lives[g.From]
	if g.Life <= life {
		return false
	}
	for id, a := range nic.mu.agents {
		if id.From == g.From && a.life == life && a.address != g.Address {
			return true
		}
	}
	return false
}

// isNewestLocked reports whether this machine knows no newer life of the sender than the greeting's,
// and if so, notes the greeting's life as the newest.
func (nic *NIC) isNewestLocked(g hosts.Greeting) bool {
	if g.Life < nic.mu.lives[g.From] {
		return false
	}
	nic.mu.lives[g.From] = g.Life
	return true
}

// isNewest is isNewestLocked for a caller that does not hold the lock.
func (nic *NIC) isNewest(g hosts.Greeting) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	return nic.isNewestLocked(g)
}

// dismiss forgets an agent that ends.
func (nic *NIC) dismiss(a *agent) {
	a.copier.End()
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if nic.mu.agents[a.id] == a {
		delete(nic.mu.agents, a.id)
	}
}
