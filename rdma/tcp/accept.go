package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	workersMax = 1 << 16
	// strangersMax is how many accepted connections may be without a greeting; further ones wait
	// to be accepted, so that a port scanner uses up no memory.
	strangersMax = 256
	// greetingMax is how long an accepted connection may be without a greeting.
	greetingMax = 5 * time.Second
	// silenceMax is how long the other host may leave bytes unacknowledged, or keep-alive probes
	// unanswered.
	silenceMax = 5 * time.Second
	// retryAfter is how long accepting pauses when the process has no descriptors left.
	retryAfter = 10 * time.Millisecond
)

// accept accepts connections until the door is closed.
func (nic *NIC) accept() {
	strangers := make(chan struct{}, strangersMax)
	for {
		strangers <- struct{}{}
		accepted, err := nic.door.Accept()
		if err == nil {
			nic.running.Go(func() { nic.welcome(accepted, func() { <-strangers }) })
			continue
		}
		<-strangers
		if errors.Is(err, net.ErrClosed) {
			return
		}
		time.Sleep(retryAfter)
	}
}

// welcome reads the purpose of an accepted connection from its greeting, and serves the connection. It
// calls known when it has read the greeting, or has failed to.
func (nic *NIC) welcome(accepted net.Conn, known func()) {
	socket := socketOf(accepted)
	defer socket.Close()
	if !nic.keep(socket) {
		known()
		return
	}
	defer nic.drop(socket)
	stream, g, err := nic.hear(socket, accepted)
	known()
	if err == nil {
		err = nic.serve(socket, stream, g)
	}
	if err != nil && nic.cfg.Refused != nil {
		nic.cfg.Refused(socket.RemoteAddr(), err)
	}
}

// keep records an accepted connection, so that Close ends it; ok is false if the NIC is closed.
func (nic *NIC) keep(socket net.Conn) (ok bool) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if !nic.mu.closed {
		nic.mu.sockets[socket] = struct{}{}
	}
	return !nic.mu.closed
}

func (nic *NIC) drop(socket net.Conn) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	delete(nic.mu.sockets, socket)
}

// socketOf returns the socket below an accepted connection.
func socketOf(accepted net.Conn) *net.TCPConn {
	if secured, ok := accepted.(*tls.Conn); ok {
		accepted = secured.NetConn()
	}
	return accepted.(*net.TCPConn)
}

// hear makes the handshake of an accepted connection, unless Config.Listener has, and reads its greeting.
func (nic *NIC) hear(socket *net.TCPConn, accepted net.Conn) (stream net.Conn, g greeting, err error) {
	if err = nic.tune(socket); err != nil {
		return nil, g, err
	}
	if err = socket.SetDeadline(time.Now().Add(greetingMax)); err != nil {
		return nil, g, err
	}
	stream = accepted
	if nic.cfg.TLS != nil && nic.cfg.Listener == nil {
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

// tune makes the kernel end the connection when the other host is silent.
func (nic *NIC) tune(socket *net.TCPConn) error {
	alive := net.KeepAliveConfig{Enable: true, Idle: nic.cfg.silence / 2, Interval: time.Second, Count: 3}
	if err := socket.SetKeepAliveConfig(alive); err != nil {
		return err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(nic.cfg.silence.Milliseconds()))
	})
	return errors.Join(err, failed)
}

// serve answers a greeting, and serves the connection for its purpose. An error says why the
// connection was refused, or ended.
func (nic *NIC) serve(socket, stream net.Conn, g greeting) error {
	r := reply{refusal: nic.refuses(stream, g), life: nic.life}
	if r.refusal == accepted && nic.isTwin(g) {
		r.refusal = twin
	}
	var a *agent
	if r.refusal == accepted && g.purpose == operations {
		a, r.refusal = nic.admit(socket, stream, g)
	}
	if a != nil {
		defer close(a.ended)
		defer nic.dismiss(a)
	}
	if r.refusal == accepted && g.purpose != operations && !nic.isNewest(g) {
		r.refusal = outdated
	}
	var key []byte
	if r.refusal == accepted && g.purpose == keysOfLine {
		key, r.refusal = nic.line.handOut(g.from)
	}
	if r.refusal == accepted {
		nic.learn(g)
	}
	answer := r.encode()
	if r.refusal == accepted && g.purpose == keysOfDatagrams {
		key = nic.mail.handOut(g.from)
	}
	answer = append(answer, key...)
	if _, err := stream.Write(answer); err != nil {
		return nil // the other side has left
	}
	if r.refusal != accepted {
		return fmt.Errorf("machine %d: %w", g.from, refusals[r.refusal])
	}
	if a != nil {
		return a.run()
	}
	return nil
}

// refuses checks a greeting.
func (nic *NIC) refuses(stream net.Conn, g greeting) refusal {
	switch {
	case g.cluster != nic.cfg.Cluster:
		return otherCluster
	case g.to != nic.cfg.Machine || g.from == nic.cfg.Machine:
		return otherMachine
	case g.purpose > keysOfLine, g.purpose == keysOfLine && nic.line == nil:
		return unknownPurpose
	case nic.isCut(g.from):
		return leaving
	}
	if secured, ok := stream.(*tls.Conn); ok && nic.cfg.Authorize != nil {
		if nic.cfg.Authorize(g.from, secured.ConnectionState()) != nil {
			return notAuthorized
		}
	}
	return accepted
}

// admit makes the agent of a connection, and stops the agents that it replaces: when admit returns,
// they copy nothing more.
func (nic *NIC) admit(socket, stream net.Conn, g greeting) (*agent, refusal) {
	id := agentID{g.from, int(g.worker)}
	nic.mu.Lock()
	q := nic.mu.queues[id.worker]
	if r := nic.admitsLocked(id, q, g); r != accepted {
		nic.mu.Unlock()
		return nil, r
	}
	former := nic.removeAgentsLocked(func(old agentID, a *agent) bool {
		return old == id || old.from == id.from && a.life != g.life
	})
	a := newAgent(nic, q, socket, stream, id, g)
	nic.mu.agents[id] = a
	nic.mu.copiers[&a.copier] = struct{}{}
	nic.mu.Unlock()
	stopAll(former)
	return a, accepted
}

// admitsLocked returns why there can be no agent for a greeting, or accepted.
func (nic *NIC) admitsLocked(id agentID, q *Queue, g greeting) refusal {
	present := nic.mu.agents[id]
	switch {
	case nic.mu.closed || nic.mu.cut[id.from]:
		return leaving
	case q == nil:
		return noWorker
	case !nic.isNewestLocked(g), present != nil && present.life == g.life && int32(g.dial-present.dial) < 0:
		return outdated
	}
	return accepted
}

// isTwin reports whether a greeting comes from a new life of a machine, at another address, while the
// machine's earlier life is connected. Then two processes were started as one machine, and the new one
// must not take the place of the other. If the earlier process has died, its connections end, at the
// latest after some silence. Two processes of one host cannot have the same address.
func (nic *NIC) isTwin(g greeting) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	life := nic.mu.lives[g.from]
	if g.life <= life {
		return false
	}
	for id, a := range nic.mu.agents {
		if id.from == g.from && a.life == life && a.address != g.address {
			return true
		}
	}
	return false
}

// isNewestLocked reports whether this machine knows no newer life of the sender than the greeting's,
// and if so, notes the greeting's life as the newest.
func (nic *NIC) isNewestLocked(g greeting) bool {
	if g.life < nic.mu.lives[g.from] {
		return false
	}
	nic.mu.lives[g.from] = g.life
	return true
}

// isNewest is isNewestLocked for a caller that does not hold the lock.
func (nic *NIC) isNewest(g greeting) bool {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	return nic.isNewestLocked(g)
}

// dismiss forgets an agent that ends.
func (nic *NIC) dismiss(a *agent) {
	a.copier.end()
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if nic.mu.agents[a.id] == a {
		delete(nic.mu.agents, a.id)
	}
}

// removeAgentsLocked removes the agents that match from the table, for stopAll.
func (nic *NIC) removeAgentsLocked(match func(id agentID, a *agent) bool) (removed []*agent) {
	for id, a := range nic.mu.agents {
		if match(id, a) {
			removed = append(removed, a)
			delete(nic.mu.agents, id)
		}
	}
	return removed
}

// stopAll ends the connections of agents and waits until these copy nothing more.
func stopAll(agents []*agent) {
	for _, a := range agents {
		_ = a.socket.Close() // wakes the agent
	}
	for _, a := range agents {
		<-a.ended
	}
}
