package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// silenceMax is how long the other host may leave bytes unacknowledged, or keep-alive probes unanswered.
const silenceMax = 5 * time.Second

// welcome reads the greeting of an accepted connection, and serves it. It calls known when it has read the greeting,
// or has failed to.
func (nic *NIC) welcome(accepted net.Conn, known func()) {
	socket := hosts.SocketOf(accepted)
	defer socket.Close()
	if !nic.sockets.Keep(socket, nic.cfg.Machine) {
		known()
		return
	}
	defer nic.sockets.Drop(socket)
	stream, g, err := hosts.Hear(nic.ctx, &nic.security, accepted, readGreeting)
	known()
	if err == nil && nic.sockets.Keep(socket, g.From) {
		err = nic.serve(socket, stream, g)
	}
	if err != nil && nic.cfg.Refused != nil {
		nic.cfg.Refused(socket.RemoteAddr(), err)
	}
}

// serve answers a greeting, and serves the connection for its purpose. An error says why the connection was refused.
func (nic *NIC) serve(socket, stream net.Conn, g greeting) error {
	r := reply{Reply: hosts.Reply{Refusal: nic.refuses(stream, g), Life: nic.life}, at: nic.limits.self}
	var a *agent
	if r.Refusal == hosts.Accepted && g.Purpose == operations {
		if a, r.Refusal = nic.admit(socket, stream, g); a != nil {
			defer nic.dismiss(a)
			r.at = a.pair.address()
		}
	}
	if r.Refusal == hosts.Accepted && g.Purpose == datagrams {
		r.at = nic.mail.post.address()
	}
	if r.Refusal == hosts.Accepted {
		nic.addresses.Learn(g.Greeting)
	}
	if _, err := stream.Write(r.encode()); err != nil {
		return nil // the other side has left
	}
	if r.Refusal != hosts.Accepted {
		return fmt.Errorf("machine %d: %w", g.From, hosts.Refusals[r.Refusal])
	}
	if a != nil {
		a.run()
		return nil
	}
	_, _ = io.Copy(io.Discard, stream) // until the other side, or this one, ends
	return nil
}

// refuses returns why a greeting is refused. If it is accepted, refuses notes the sender's life.
func (nic *NIC) refuses(stream net.Conn, g greeting) hosts.Refusal {
	isPermitted := nic.security.Permit(stream, g.From) == nil
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case g.Cluster != nic.cfg.Cluster:
		return hosts.OtherCluster
	case g.To != nic.cfg.Machine || g.From == nic.cfg.Machine:
		return hosts.OtherMachine
	case g.Purpose > datagrams:
		return hosts.UnknownPurpose
	case !isPermitted:
		return hosts.NotAuthorized
	case nic.mu.cut[g.From] || nic.mu.closed:
		return hosts.Leaving
	case nic.mu.dead != nil || nic.mu.down:
		return hosts.CardBroken
	case g.Life < nic.mu.lives[g.From]:
		return hosts.Outdated
	}
	nic.mu.lives[g.From] = g.Life
	return hosts.Accepted
}

// admit makes the agent of a connection. First it stops the agents that this one replaces,
// those of the same worker and of former lives of the machine: the card carries out nothing
// more for them.
func (nic *NIC) admit(socket, stream net.Conn, g greeting) (*agent, hosts.Refusal) {
	id := hosts.AgentID{From: g.From, Worker: int(g.Worker)}
	nic.mu.Lock()
	former := nic.mu.agents.Remove(func(old hosts.AgentID, a *agent) bool {
		return (old == id && !a.isNewerThan(g)) || (old.From == id.From && a.life < g.Life)
	})
	q := nic.mu.queues[id.Worker]
	if q != nil {
		q.answering.Add(1)
	}
	nic.mu.Unlock()
	hosts.StopAll(former)
	if q == nil {
		return nil, hosts.NoWorker
	}
	p, err := q.lane.pair(0)
	if err != nil {
		q.answering.Done()
		return nil, hosts.CardBroken
	}
	a := &agent{nic: nic, id: id, q: q, life: g.Life, dial: g.Dial, socket: socket, stream: stream, pair: p, told: map[rdma.Key]bool{}, ended: make(chan struct{})}
	if r := nic.enter(a, q); r != hosts.Accepted {
		nic.leaked(p.close())
		q.answering.Done()
		return nil, r
	}
	if err := p.connect(g.at, nic.cfg.TrafficClass); err != nil {
		nic.dismiss(a)
		return nil, hosts.CardBroken
	}
	return a, hosts.Accepted
}

// isNewerThan reports whether the agent's connection is newer than the one that sent the greeting: of a later life of
// the other machine, or made later in the same life.
func (a *agent) isNewerThan(g greeting) bool {
	return a.life > g.Life || (a.life == g.Life && g.IsBefore(a.dial))
}

// enter adds an agent to the table, or returns the reason to refuse it.
func (nic *NIC) enter(a *agent, q *Queue) hosts.Refusal {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case nic.mu.closed || nic.mu.cut[a.id.From]:
		return hosts.Leaving
	case nic.mu.queues[a.id.Worker] != q:
		return hosts.NoWorker
	case nic.mu.agents[a.id] != nil || nic.mu.lives[a.id.From] > a.life: // a newer connection, or life, came first
		return hosts.Outdated
	}
	nic.mu.agents[a.id] = a
	return hosts.Accepted
}

// dial connects to another machine and sends it g, in which the caller has set purpose,
// machine, worker and the address of its queue pair. It returns the address of the other queue
// pair, which the reply brings. If it fails before ctx is done, it forgets the address that it has tried.
func (nic *NIC) dial(ctx context.Context, g greeting) (stream net.Conn, to address, err error) {
	at, ok := nic.addresses.Of(g.To)
	err = errNoAddress
	if ok {
		stream, to, err = nic.dialAt(ctx, at, g)
	}
	if err == nil || ctx.Err() != nil {
		return stream, to, err
	}
	nic.addresses.Forget(g.To, at)
	if nic.cfg.Unreached != nil {
		nic.cfg.Unreached(g.To, at, err)
	}
	return nil, to, err
}

// dialAt is dial for an address, with hosts.GreetingMax as a limit.
func (nic *NIC) dialAt(ctx context.Context, at string, g greeting) (stream net.Conn, to address, err error) {
	ctx, cancel := context.WithTimeout(ctx, hosts.GreetingMax)
	defer cancel()
	var d net.Dialer
	socket, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, to, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) }) // in the past: greet fails
	stream, to, err = nic.greet(ctx, socket.(*net.TCPConn), at, g)
	if !stop() && err == nil { // the deadline is set, so the connection is of no use
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, to, errors.Join(err, socket.Close())
	}
	return stream, to, nil
}

// greet makes the handshake of a connection, sends the greeting and reads the reply.
func (nic *NIC) greet(ctx context.Context, socket *net.TCPConn, at string, g greeting) (stream net.Conn, to address, err error) {
	if err = nic.security.Tune(socket); err != nil {
		return nil, to, err
	}
	if stream, err = nic.security.Shake(ctx, socket, g.To, at); err != nil {
		return nil, to, err
	}
	g.From, g.Life, g.Cluster, g.Dial, g.Address = nic.cfg.Machine, nic.life, nic.cfg.Cluster, nic.dials.Add(1), nic.cfg.Advertise
	if _, err = stream.Write(g.encode()); err != nil {
		return nil, to, err
	}
	_, to, err = readReply(stream)
	return stream, to, err
}
