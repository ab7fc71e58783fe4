package hosts

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/rdma"
)

// GreetingMax is how long an accepted connection may be without a greeting.
const GreetingMax = 5 * time.Second

// ErrTLS says that a TLS configuration would let in strangers.
var ErrTLS = errors.New("TLS needs RootCAs and ClientCAs, and must verify: without them, the authorities of the system would let in strangers")

// Security says how a machine secures its connections.
type Security struct {
	// TLS has the machine's certificate, and in RootCAs and ClientCAs the authorities that certify the others'. With nil,
	// connections are in the clear.
	TLS *tls.Config
	// Authorize, if not nil, decides whether the owner of a certificate may act as machine m. With
	// nil, the owner of any certificate of the authorities may act as any machine.
	Authorize func(m rdma.MachineID, peer tls.ConnectionState) error
	// IsShaken says that accepted connections have had their handshake.
	IsShaken bool
	// Silence is how long the other host may leave bytes unacknowledged, or keep-alive probes unanswered.
	Silence time.Duration
}

// Check refuses a TLS configuration that would let in strangers, with ErrTLS.
func (s *Security) Check() error {
	if c := s.TLS; c != nil && (c.RootCAs == nil || c.ClientCAs == nil || c.InsecureSkipVerify) {
		return ErrTLS
	}
	return nil
}

// server returns the TLS configuration with which the machine accepts connections.
func (s *Security) server() *tls.Config {
	c := s.TLS.Clone()
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.DynamicRecordSizingDisabled = true
	c.SessionTicketsDisabled = true
	c.GetConfigForClient = nil // the function would replace what is set here
	return c
}

// client returns the TLS configuration with which the machine connects to a host.
func (s *Security) client(host string) *tls.Config {
	c := s.TLS.Clone()
	c.MinVersion = tls.VersionTLS13
	c.DynamicRecordSizingDisabled = true
	if c.ServerName == "" {
		c.ServerName, _, _ = strings.Cut(host, "%") // certificates know no zones
	}
	return c
}

// Hear makes the handshake of an accepted connection, if TLS needs one, and calls read for its greeting.
// Both must end within GreetingMax. Hear returns the connection to use from then on, and the greeting.
func Hear[G any](ctx context.Context, s *Security, accepted net.Conn, read func(io.Reader) (G, error)) (stream net.Conn, g G, err error) {
	socket := SocketOf(accepted)
	if err = s.Tune(socket); err != nil {
		return nil, g, err
	}
	if err = socket.SetDeadline(time.Now().Add(GreetingMax)); err != nil {
		return nil, g, err
	}
	stream = accepted
	if s.TLS != nil && !s.IsShaken {
		secured := tls.Server(socket, s.server())
		if err = secured.HandshakeContext(ctx); err != nil {
			return nil, g, err
		}
		stream = secured
	}
	if g, err = read(stream); err != nil {
		return nil, g, err
	}
	return stream, g, socket.SetDeadline(time.Time{})
}

// Shake makes the handshake of a connection that this machine has opened to machine to. It returns the
// connection to use from then on: without TLS, stream itself. It fails, too, if the other side may not act as
// that machine.
func (s *Security) Shake(ctx context.Context, stream net.Conn, to rdma.MachineID, address string) (net.Conn, error) {
	if s.TLS == nil {
		return stream, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(stream, s.client(host))
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, s.Permit(secured, to)
}

// Permit returns nil if the other side of a connection may act as machine m, and otherwise the
// reason why not.
func (s *Security) Permit(stream net.Conn, m rdma.MachineID) error {
	if secured, ok := stream.(*tls.Conn); ok && s.Authorize != nil {
		return s.Authorize(m, secured.ConnectionState())
	}
	return nil
}

// SocketOf returns the socket below an accepted connection.
func SocketOf(accepted net.Conn) *net.TCPConn {
	if secured, ok := accepted.(*tls.Conn); ok {
		accepted = secured.NetConn()
	}
	return accepted.(*net.TCPConn)
}

// Tune makes the kernel end the connection when the other host is silent.
func (s *Security) Tune(socket *net.TCPConn) error {
	alive := net.KeepAliveConfig{Enable: true, Idle: s.Silence / 2, Interval: time.Second, Count: 3}
	if err := socket.SetKeepAliveConfig(alive); err != nil {
		return err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(s.Silence.Milliseconds()))
	})
	return errors.Join(err, failed)
}
