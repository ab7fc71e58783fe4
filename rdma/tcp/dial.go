package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"github.com/farmsql/farmsql/rdma"
)

var errNoAddress = errors.New("tcp: the machine has no address")

// dial connects to another machine and sends it g, of which the caller fills in purpose, to and worker.
// If more is not nil, dial fills it with the bytes that follow the reply.
func (nic *NIC) dial(ctx context.Context, g greeting, more []byte) (*link, error) {
	address, ok := nic.addressOf(g.to)
	err := errNoAddress
	if ok {
		var l *link
		if l, err = nic.dialAt(ctx, address, g, more); err == nil {
			return l, nil
		}
		if ctx.Err() == nil {
			nic.forget(g.to, address)
		}
	}
	if nic.cfg.Unreached != nil && ctx.Err() == nil {
		nic.cfg.Unreached(g.to, address, err)
	}
	return nil, err
}

func (nic *NIC) dialAt(ctx context.Context, address string, g greeting, more []byte) (_ *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectMax)
	defer cancel()
	var d net.Dialer
	dialed, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socket := dialed.(*net.TCPConn)
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	l, err := nic.greet(ctx, socket, address, g, more)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return l, nil
}

func (nic *NIC) greet(ctx context.Context, socket *net.TCPConn, address string, g greeting, more []byte) (*link, error) {
	if err := nic.tune(socket); err != nil {
		return nil, err
	}
	outbox, err := newOutbox(socket)
	if err != nil {
		return nil, err
	}
	l := &link{outbox, outbox}
	if nic.cfg.TLS != nil {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		secured := tls.Client(outbox, nic.cfg.client(host))
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		if nic.cfg.Authorize != nil {
			if err := nic.cfg.Authorize(g.to, secured.ConnectionState()); err != nil {
				return nil, err
			}
		}
		l.stream = secured
	}
	g.from, g.life, g.cluster, g.dial = nic.cfg.Machine, nic.life, nic.cfg.Cluster, nic.dials.Add(1)
	g.address = nic.cfg.Advertise
	if _, err := l.stream.Write(g.encode()); err != nil {
		return nil, err
	}
	if _, err := readReply(l.stream); err != nil {
		return nil, err
	}
	_, err = io.ReadFull(l.stream, more)
	return l, err
}

// learn notes the address that a machine tells of itself in a greeting that has been accepted, unless
// a later life of the machine has told one meanwhile.
func (nic *NIC) learn(g greeting) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if g.life == nic.mu.lives[g.from] {
		nic.mu.told[g.from] = g.address
	}
}

// forget drops the address that a machine has told, because it cannot be reached there: then
// Config.Resolve, which may know a later one, is asked.
func (nic *NIC) forget(m rdma.MachineID, address string) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	if nic.mu.told[m] == address {
		delete(nic.mu.told, m)
	}
}

// addressOf returns the address of another machine.
func (nic *NIC) addressOf(m rdma.MachineID) (address string, ok bool) {
	nic.mu.Lock()
	address, ok = nic.mu.told[m]
	nic.mu.Unlock()
	if ok {
		return address, true
	}
	return nic.cfg.Resolve(m)
}
