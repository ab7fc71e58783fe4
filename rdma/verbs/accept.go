package verbs

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

const (
	// strangersMax is how many accepted connections may be without a greeting; further ones wait
	// to be accepted, so that a port scanner uses up no memory.
	strangersMax = 256
	// greetingMax is how long an accepted connection may be without a greeting, and a dialled one without a reply.
	greetingMax = 5 * time.Second
	// silenceMax is how long the other host may leave keep-alive probes unanswered.
	silenceMax = 5 * time.Second
	// retryAfter is how long accepting pauses when the process has no descriptors left.
	retryAfter = 10 * time.Millisecond
)

// accept accepts connections until the door is closed.
func (nic *NIC) accept() {
	strangers := make(chan struct{}, strangersMax)
	for {
		strangers <- struct{}{}
		socket, err := nic.door.Accept()
		if err == nil {
			nic.running.Go(func() { nic.welcome(socket, func() { <-strangers }) })
			continue
		}
		<-strangers
		if errors.Is(err, net.ErrClosed) {
			return
		}
		time.Sleep(retryAfter)
	}
}

// welcome reads the greeting of an accepted connection, and serves it. It calls known when it has read the greeting,
// or has failed to.
func (nic *NIC) welcome(socket net.Conn, known func()) {
	defer socket.Close()
	if !nic.keep(socket, nic.cfg.Machine) {
		known()
		return
	}
	defer nic.drop(socket)
	stream, g, err := nic.hear(socket)
	known()
	if err == nil && nic.keep(socket, g.from) {
		nic.serve(socket, stream, g)
	}
}

// keep records an accepted connection and whose it is, so that Close ends it; ok is false if the NIC is closed.
func (nic *NIC) keep(socket net.Conn, from rdma.MachineID) (ok bool) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if !nic.mu.closed {
		nic.mu.sockets[socket] = from
	}
	return !nic.mu.closed
}

func (nic *NIC) drop(socket net.Conn) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	delete(nic.mu.sockets, socket)
}

// tune makes the kernel end a connection when the other host is silent.
func tune(socket net.Conn) error {
	return socket.(*net.TCPConn).SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silenceMax / 2, Interval: time.Second, Count: 3})
}

// hear makes the handshake of an accepted connection and reads its greeting.
func (nic *NIC) hear(socket net.Conn) (stream net.Conn, g greeting, err error) {
	if err = tune(socket); err != nil {
		return nil, g, err
	}
	if err = socket.SetDeadline(time.Now().Add(greetingMax)); err != nil {
		return nil, g, err
	}
	stream = socket
	if nic.cfg.TLS != nil {
		secured := tls.Server(socket, nic.cfg.server())
		if err = secured.HandshakeContext(nic.ctx); err != nil {
			return nil, g, err
		}
		stream = secured
	}
	if g, err = readGreeting(stream); err != nil {
		return nil, g, err
	}
	return stream, g, socket.SetDeadline(time.Time{})
}

// server returns the TLS configuration with which the machine accepts connections.
func (c *Config) server() *tls.Config {
	s := c.TLS.Clone()
	s.MinVersion = tls.VersionTLS13
	s.ClientAuth = tls.RequireAndVerifyClientCert
	s.SessionTicketsDisabled = true
	s.GetConfigForClient = nil // it would replace what is set here
	return s
}

// serve answers a greeting, and serves the connection for its purpose.
func (nic *NIC) serve(socket, stream net.Conn, g greeting) {
	r := reply{refusal: nic.refuses(g), life: nic.life, address: nic.limits.self}
	var a *agent
	if r.refusal == accepted && g.purpose == operations {
		if a, r.refusal = nic.admit(socket, stream, g); a != nil {
			defer nic.dismiss(a)
			r.address = a.pair.address()
		}
	}
	if r.refusal == accepted && g.purpose == datagrams {
		r.address = nic.mail.post.address()
	}
	if _, err := stream.Write(r.encode()); err != nil || r.refusal != accepted {
		return
	}
	if a != nil {
		a.run()
		return
	}
	_, _ = io.Copy(io.Discard, stream) // until the other side, or this one, ends
}

// refuses checks a greeting.
func (nic *NIC) refuses(g greeting) refusal {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case g.cluster != nic.cfg.Cluster:
		return otherCluster
	case g.to != nic.cfg.Machine || g.from == nic.cfg.Machine:
		return otherMachine
	case g.purpose > datagrams:
		return unknownPurpose
	case nic.mu.cut[g.from] || nic.mu.closed:
		return leaving
	case nic.mu.dead != nil || nic.mu.down:
		return cardBroken
	case g.life < nic.mu.lives[g.from]:
		return outdated
	}
	nic.mu.lives[g.from] = g.life
	return accepted
}

// admit makes the agent of a connection, after the card has stopped carrying out anything for the agents that it replaces: those
// of the same worker, and of former lives of the machine.
func (nic *NIC) admit(socket, stream net.Conn, g greeting) (*agent, refusal) {
	id := agentID{g.from, int(g.worker)}
	nic.mu.Lock()
	former := nic.removeAgentsLocked(func(old agentID, a *agent) bool {
		return old == id && !a.isNewerThan(g) || old.from == id.from && a.life < g.life
	})
	q := nic.mu.queues[id.worker]
	if q != nil {
		q.answering.Add(1)
	}
	nic.mu.Unlock()
	stopAll(former)
	if q == nil {
		return nil, noWorker
	}
	p, err := q.lane.pair(0)
	if err != nil {
		q.answering.Done()
		return nil, cardBroken
	}
	a := &agent{nic: nic, id: id, q: q, life: g.life, dial: g.dial, socket: socket, stream: stream, pair: p, told: map[rdma.Key]bool{}, ended: make(chan struct{})}
	if r := nic.enter(a, q); r != accepted {
		nic.leaked(p.close())
		q.answering.Done()
		return nil, r
	}
	if err := p.connect(g.address, nic.cfg.TrafficClass); err != nil {
		nic.dismiss(a)
		return nil, cardBroken
	}
	return a, accepted
}

// isNewerThan reports whether the agent's connection has been made after that of a greeting of the same life.
func (a *agent) isNewerThan(g greeting) bool {
	return a.life > g.life || a.life == g.life && int32(g.dial-a.dial) < 0
}

// enter adds an agent to the table, or returns why it is refused by now.
func (nic *NIC) enter(a *agent, q *Queue) refusal {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case nic.mu.closed || nic.mu.cut[a.id.from]:
		return leaving
	case nic.mu.queues[a.id.worker] != q:
		return noWorker
	case nic.mu.agents[a.id] != nil || nic.mu.lives[a.id.from] > a.life:
		return outdated
	}
	nic.mu.agents[a.id] = a
	return accepted
}

// dial connects to another machine, sends it g, of which the caller fills in purpose, to, worker and address, and returns the
// address in its reply.
func (nic *NIC) dial(ctx context.Context, g greeting) (stream net.Conn, to address, err error) {
	at, ok := nic.cfg.Resolve(g.to)
	if !ok {
		return nil, to, errNoAddress
	}
	ctx, cancel := context.WithTimeout(ctx, greetingMax)
	defer cancel()
	var d net.Dialer
	socket, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, to, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	stream, to, err = nic.greet(ctx, socket, at, g)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, to, errors.Join(err, socket.Close())
	}
	return stream, to, nil
}

func (nic *NIC) greet(ctx context.Context, socket net.Conn, at string, g greeting) (stream net.Conn, to address, err error) {
	if err = tune(socket); err != nil {
		return nil, to, err
	}
	stream = socket
	if nic.cfg.TLS != nil {
		host, _, err := net.SplitHostPort(at)
		if err != nil {
			return nil, to, err
		}
		config := nic.cfg.TLS.Clone()
		config.MinVersion = tls.VersionTLS13
		if config.ServerName == "" {
			config.ServerName = host
		}
		secured := tls.Client(socket, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, to, err
		}
		stream = secured
	}
	g.from, g.life, g.cluster, g.dial = nic.cfg.Machine, nic.life, nic.cfg.Cluster, nic.dials.Add(1)
	if _, err = stream.Write(g.encode()); err != nil {
		return nil, to, err
	}
	_, to, err = readReply(stream)
	return stream, to, err
}
