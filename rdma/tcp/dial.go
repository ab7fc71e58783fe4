package tcp

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/farmsql/farmsql/rdma/hosts"
)

var errNoAddress = errors.New("tcp: the machine has no address")

// dial connects to another machine and sends it g, of which the caller fills in purpose, to and worker.
// If more is not nil, dial fills it with the bytes that follow the reply. An address at which this fails is
// forgotten, unless ctx has ended.
func (nic *NIC) dial(ctx context.Context, g hosts.Greeting, more []byte) (*link, error) {
	address, ok := nic.addresses.Of(g.To)
	err := errNoAddress
	if ok {
		var l *link
		if l, err = nic.dialAt(ctx, address, g, more); err == nil {
			return l, nil
		}
		if ctx.Err() == nil {
			nic.addresses.Forget(g.To, address)
		}
	}
	if nic.cfg.Unreached != nil && ctx.Err() == nil {
		nic.cfg.Unreached(g.To, address, err)
	}
	return nil, err
}

// dialAt is dial for an address, with connectMax as a limit.
func (nic *NIC) dialAt(ctx context.Context, address string, g hosts.Greeting, more []byte) (_ *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectMax)
	defer cancel()
	var d net.Dialer
	dialed, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socket := dialed.(*net.TCPConn)
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })() // the stop function; it runs before cancel
	l, err := nic.greet(ctx, socket, address, g, more)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return l, nil
}

// greet makes the handshake of a connection, sends the greeting and reads the reply, and then more.
func (nic *NIC) greet(ctx context.Context, socket *net.TCPConn, address string, g hosts.Greeting, more []byte) (*link, error) {
	if err := nic.security.Tune(socket); err != nil {
		return nil, err
	}
	outbox, err := newOutbox(socket, &nic.counts.Worker(int(g.Worker)).Calls)
	if err != nil {
		return nil, err
	}
	stream, err := nic.security.Shake(ctx, outbox, g.To, address)
	if err != nil {
		return nil, err
	}
	l := &link{outbox, stream}
	g.From, g.Life, g.Cluster, g.Dial = nic.cfg.Machine, nic.life, nic.cfg.Cluster, nic.dials.Add(1)
	g.Address = nic.cfg.Advertise
	if _, err := l.stream.Write(protocol.EncodeGreeting(g)); err != nil {
		return nil, err
	}
	if _, err := protocol.ReadReply(l.stream); err != nil {
		return nil, err
	}
	_, err = io.ReadFull(l.stream, more)
	return l, err
}
