// Package peerport lets the protocols between machines share one TCP port, so that a firewall needs
// one rule and a machine one address.
//
//	             +-- no protocol ----> Listener(Operations)   rdma/tcp
//	port -- TLS -+-- farmsql-store --> Listener(Store)        cluster/raftstore
//	             +-- farmsql-join ---> Listener(Join)         cluster/join, clients without a certificate
//
// A client names the protocol in its TLS handshake (ALPN, RFC 7301). The port makes the handshake
// and gives the connection, a *tls.Conn, to the listener of the protocol. Machines that name none
// want operations, as machines of versions before this package do.
package peerport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// A Protocol is spoken over connections of a port.
type Protocol string

// The protocols.
const (
	Operations Protocol = ""
	Store      Protocol = "farmsql-store"
	Join       Protocol = "farmsql-join"
)

const (
	// handshakesMax is how many accepted connections may be in the handshake, or wait for a listener
	// to accept them; further ones wait to be accepted, so that a port scanner uses up no memory.
	handshakesMax = 256
	// handshakeMax is how long a handshake may take.
	handshakeMax = 5 * time.Second
	// acceptMax is how long a connection waits for its listener to accept it.
	acceptMax = time.Second
	// retryAfter is how long accepting pauses when the process has no descriptors left.
	retryAfter = 10 * time.Millisecond
)

var (
	// ErrNobody is the reason for refusing a connection whose protocol has no listener, or
	// whose listener does not accept it in time.
	ErrNobody = errors.New("peerport: this machine does not serve the protocol")
	errTLS    = errors.New("peerport: TLS needs a certificate and ClientCAs: without them, the authorities of the system would let in strangers")
)

// A Port accepts the connections of other machines. It is safe for concurrent use.
type Port struct {
	socket  net.Listener
	tls     *tls.Config
	refused func(from net.Addr, reason error)
	ctx     context.Context // ends with the port
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	listeners map[Protocol]*listener
}

// Open opens a port at address, HOST:PORT. config has the machine's certificate, and in
// ClientCAs the authorities that certify the others: all clients, except those of Join, need a
// certificate of these authorities. refused is called for each connection that is refused; it
// must not wait.
func Open(address string, config *tls.Config, refused func(from net.Addr, reason error)) (*Port, error) {
	if config == nil || config.ClientCAs == nil || len(config.Certificates) == 0 {
		return nil, errTLS
	}
	var listen net.ListenConfig
	socket, err := listen.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("peerport: %w", err)
	}
	p := &Port{socket: socket, tls: serverConfig(config), refused: refused, listeners: make(map[Protocol]*listener)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

// serverConfig returns the TLS configuration of a port.
func serverConfig(config *tls.Config) *tls.Config {
	members := config.Clone()
	members.MinVersion = tls.VersionTLS13
	members.ClientAuth = tls.RequireAndVerifyClientCert
	members.DynamicRecordSizingDisabled = true
	members.SessionTicketsDisabled = true
	members.NextProtos = []string{string(Store)}
	strangers := members.Clone()
	strangers.ClientAuth = tls.VerifyClientCertIfGiven
	strangers.NextProtos = []string{string(Join)}
	members.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == string(Join) {
			return strangers, nil
		}
		return nil, nil // use members
	}
	return members
}

// Address returns the address at which the port accepts connections.
func (p *Port) Address() net.Addr { return p.socket.Addr() }

// Close closes the port and its listeners, and waits until no handshake is under way. Connections
// that a listener has accepted stay open.
func (p *Port) Close() error {
	p.cancel()
	err := p.socket.Close()
	p.running.Wait()
	p.mu.Lock()
	all := make([]*listener, 0, len(p.listeners))
	for _, l := range p.listeners {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		_ = l.Close() // never fails
	}
	return err
}

// accept accepts connections until the port is closed.
func (p *Port) accept() {
	handshakes := make(chan struct{}, handshakesMax)
	for {
		handshakes <- struct{}{}
		socket, err := p.socket.Accept()
		if err == nil {
			p.running.Go(func() {
				defer func() { <-handshakes }()
				if err := p.admit(socket); err != nil {
					_ = socket.Close()
					p.refused(socket.RemoteAddr(), err)
				}
			})
			continue
		}
		<-handshakes
		if errors.Is(err, net.ErrClosed) {
			return
		}
		time.Sleep(retryAfter)
	}
}

// admit makes the handshake of a connection, and gives it to the listener of its protocol. It fails with ErrNobody
// if no listener accepts it in time.
func (p *Port) admit(socket net.Conn) error {
	if err := socket.SetDeadline(time.Now().Add(handshakeMax)); err != nil {
		return err
	}
	secured := tls.Server(socket, p.tls)
	if err := secured.HandshakeContext(p.ctx); err != nil {
		return err
	}
	if err := socket.SetDeadline(time.Time{}); err != nil {
		return err
	}
	p.mu.Lock()
	l := p.listeners[Protocol(secured.ConnectionState().NegotiatedProtocol)]
	p.mu.Unlock()
	if l == nil {
		return ErrNobody
	}
	waited := time.NewTimer(acceptMax)
	defer waited.Stop()
	select {
	case l.arrived <- secured:
		return nil
	case <-l.closed:
		return ErrNobody
	case <-p.ctx.Done():
		return ErrNobody
	case <-waited.C: // so that connections of one protocol do not hold up the others
		return ErrNobody
	}
}

// Listener returns the listener of a protocol, which accepts *tls.Conn after the handshake. Connections
// of a protocol that has no listener are refused. It panics if the protocol has one already.
func (p *Port) Listener(of Protocol) net.Listener {
	l := &listener{port: p, protocol: of, arrived: make(chan net.Conn), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners[of] != nil {
		panic(fmt.Sprintf("peerport: protocol %q has a listener already", of))
	}
	p.listeners[of] = l
	return l
}

// A listener accepts the connections of one protocol.
type listener struct {
	port     *Port
	protocol Protocol
	arrived  chan net.Conn
	closing  sync.Once
	closed   chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arrived:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The protocol can have another listener afterwards.
func (l *listener) Close() error {
	l.closing.Do(func() {
		l.port.mu.Lock()
		delete(l.port.listeners, l.protocol)
		l.port.mu.Unlock()
		close(l.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.port.Address() }

// ClientConfig returns config for connections that speak a protocol.
func ClientConfig(config *tls.Config, of Protocol) *tls.Config {
	c := config.Clone()
	c.MinVersion = tls.VersionTLS13
	c.NextProtos = nil
	if of != Operations {
		c.NextProtos = []string{string(of)}
	}
	return c
}
