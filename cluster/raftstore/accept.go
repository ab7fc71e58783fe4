package raftstore

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/farmsql/farmsql/rdma"
)

// strangersMax is how many accepted connections may be without a greeting; further ones wait to be
// accepted, so that a port scanner uses up no memory.
const strangersMax = 64

// connection is an accepted connection. A connection with a greater number was accepted later.
type connection struct {
	net.Conn
	nth uint64
}

// accept accepts connections until the listener is closed.
func (s *Store) accept(ctx context.Context) {
	strangers := make(chan struct{}, strangersMax)
	for nth := uint64(0); ; nth++ {
		strangers <- struct{}{}
		socket, err := s.cfg.Listener.Accept()
		if err == nil {
			s.running.Go(func() { s.attend(ctx, connection{socket, nth}, func() { <-strangers }) })
			continue
		}
		<-strangers
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		pause(ctx, s.cfg.after(1)) // no descriptors are left
	}
}

// attend takes messages, or calls, from an accepted connection until it breaks. It calls known when the
// connection has shown who it is from, or has failed to.
func (s *Store) attend(ctx context.Context, socket connection, known func()) {
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	stream, g, err := s.admit(ctx, socket.Conn)
	known()
	if err != nil { // the other side has been told, or is none of ours
		if s.cfg.Refused != nil && ctx.Err() == nil {
			s.cfg.Refused(socket.RemoteAddr(), err)
		}
		return
	}
	if g.kind == ofClient {
		s.serve(stream)
		return
	}
	if !s.replace(g.from, socket) {
		return
	}
	defer s.dismiss(g.from, socket)
	s.take(ctx, stream, g.from)
	s.stirs() // the machine may be dead
}

// admit makes the handshakes of an accepted connection, and tells the other side whether it is accepted. It
// fails with an error of refusals if it is not.
func (s *Store) admit(ctx context.Context, socket net.Conn) (stream net.Conn, g greeting, err error) {
	if err := socket.SetDeadline(time.Now().Add(s.cfg.after(silenceTicks))); err != nil {
		return nil, g, err
	}
	if stream, err = acceptTLS(ctx, s.cfg.TLS, socket); err != nil {
		return nil, g, err
	}
	g, err = readGreeting(stream)
	if err != nil && !errors.Is(err, refusals[otherFormat]) {
		return nil, g, err
	}
	r := s.refuses(stream, g)
	if err != nil {
		r = otherFormat
	}
	if _, err := stream.Write(r.encode()); err != nil {
		return nil, g, err
	}
	if r != accepted {
		return nil, g, refusals[r]
	}
	return stream, g, socket.SetDeadline(time.Time{})
}

// refuses returns why this machine refuses a connection with a greeting, or accepted.
func (s *Store) refuses(stream net.Conn, g greeting) refusal {
	switch {
	case g.cluster != s.founding.Cluster:
		return otherCluster
	case g.founding != s.founding.digest():
		return otherFounding
	case g.to != s.founding.Machine:
		return otherMachine
	case g.kind > ofClient:
		return otherKind
	case g.kind == ofMachine && s.peers.Load().links[raftID(g.from)] == nil:
		return s.refusalOf(g.from)
	}
	if secured, ok := stream.(securedConn); ok && g.kind == ofMachine && s.cfg.Authorize != nil {
		if s.cfg.Authorize(g.from, secured.ConnectionState()) != nil {
			return notAuthorized
		}
	}
	return accepted
}

// refusalOf returns why this machine refuses a machine that is not one of the store's: that one was
// removed, or is a stranger. If this machine was refounded and has not begun, all are strangers to
// it: a machine that hears that it was removed ends its part, and may be one of those that still keep
// the configuration.
func (s *Store) refusalOf(m rdma.MachineID) refusal {
	if s.hasBegun.Load() && slices.Contains(s.peers.Load().founders.Removed, m) {
		return removed
	}
	return stranger
}

// replace notes the connection that a machine has opened, and closes the machine's earlier one:
// the machine has given that up, but at this end it may look alive for hours. It reports false
// if the machine has opened a newer connection meanwhile: handshakes of several connections end
// in any order.
func (s *Store) replace(from rdma.MachineID, socket connection) bool {
	s.mu.Lock()
	former, isOpen := s.mu.accepted[from]
	if isOpen && former.nth > socket.nth {
		s.mu.Unlock()
		return false
	}
	s.mu.accepted[from] = socket
	s.mu.Unlock()
	if isOpen {
		former.Close()
	}
	return true
}

// dismiss forgets a machine's connection, unless replace has noted a newer one.
func (s *Store) dismiss(from rdma.MachineID, socket connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.accepted[from] == socket {
		delete(s.mu.accepted, from)
	}
}

// hasAccepted reports whether a machine has a connection to this one.
func (s *Store) hasAccepted(from rdma.MachineID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, isOpen := s.mu.accepted[from]
	return isOpen
}

// take hands messages to the loop, and answers asks, until the connection breaks.
func (s *Store) take(ctx context.Context, stream net.Conn, from rdma.MachineID) {
	in := bufio.NewReader(stream)
	for {
		a, isAsk, err := readArrival(in)
		if err != nil {
			return
		}
		if isAsk { // the answer is one byte
			if stream.SetWriteDeadline(time.Now().Add(s.cfg.after(silenceTicks))) != nil {
				return
			}
			if _, err := stream.Write([]byte{0}); err != nil {
				return
			}
			continue
		}
		if a.message != nil && !s.isPlausible(a.message, from) {
			return // it comes from no peer, or from one that does not work
		}
		select {
		case s.received <- a:
		case <-ctx.Done():
			return
		}
	}
}

// isPlausible checks who a message is from and to; sender is the machine whose connection brought it. A former
// leader passes on what another machine has sent to it as the leader.
func (s *Store) isPlausible(m *raftpb.Message, sender rdma.MachineID) bool {
	isPassedOn := m.GetType() == raftpb.MsgProp || m.GetType() == raftpb.MsgReadIndex
	isMember := s.peers.Load().links[m.GetFrom()] != nil
	return m.GetTo() == raftID(s.founding.Machine) && isMember && (m.GetFrom() == raftID(sender) || isPassedOn)
}
