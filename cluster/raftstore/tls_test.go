package raftstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// testProtocol is the name of the store's connections in a handshake.
const testProtocol = "configuration"

// A port is a listener that makes the handshakes itself and hands out only the connections of testProtocol.
type port struct {
	net.Listener
	config      *tls.Config
	connections chan net.Conn
	closed      chan struct{}
	close       sync.Once
	running     sync.WaitGroup
}

func newPort(t *testing.T, config *tls.Config) *port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config = config.Clone()
	config.ClientAuth, config.NextProtos = tls.RequireAndVerifyClientCert, []string{"another", testProtocol}
	p := &port{Listener: l, config: config, connections: make(chan net.Conn), closed: make(chan struct{})}
	p.running.Go(func() {
		for {
			socket, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.hand(socket) })
		}
	})
	t.Cleanup(func() {
		p.Close()
		p.running.Wait()
	})
	return p
}

// hand makes the handshake of a connection.
func (p *port) hand(socket net.Conn) {
	secured := tls.Server(socket, p.config)
	if err := secured.HandshakeContext(context.Background()); err == nil && secured.ConnectionState().NegotiatedProtocol == testProtocol {
		select {
		case p.connections <- secured:
			return
		case <-p.closed:
		}
	}
	socket.Close()
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error {
	p.close.Do(func() { close(p.closed) })
	return p.Listener.Close()
}

// Machines work over ports that they share with other protocols: the port has made the handshake when the
// store accepts a connection. A dialer may make it too. Answers take the way of a connection in the other
// direction, so both are tried.
func TestSharedPort(t *testing.T) {
	secured := certificates(t)
	secured.NextProtos = []string{testProtocol}
	ports := []*port{newPort(t, secured), newPort(t, secured)}
	addressAt := func(address string) string {
		for m, p := range ports {
			if address == addressOf(m) {
				return p.Addr().String()
			}
		}
		return "127.0.0.1:0"
	}
	dialers := []func(ctx context.Context, address string) (net.Conn, error){
		func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addressAt(address))
		},
		func(ctx context.Context, address string) (net.Conn, error) {
			return (&tls.Dialer{Config: secured}).DialContext(ctx, "tcp", addressAt(address))
		},
	}
	var stores []*Store
	for m := range ports {
		folder := t.TempDir()
		if err := Create(folder, founding(3, m)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Folder: folder, Listener: ports[m], Dial: dialers[m], TLS: secured, Patience: testPatience, tick: testTick})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
	}
	mustSwap(t, stores[0], 0, configuration(1, 0))
	mustSwap(t, stores[1], 1, configuration(2, 0))
	if got := mustLoad(t, stores[0]); !reflect.DeepEqual(got, configuration(2, 0)) {
		t.Errorf("%+v", got)
	}
}

// handshake connects two ends by TLS, and returns what each has of it.
func handshake(t *testing.T, server, client *tls.Config) (accepted, dialled *tls.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted, dialled = tls.Server(here, server), tls.Client(there, client)
	t.Cleanup(func() {
		here.Close()
		there.Close()
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = dialled.HandshakeContext(context.Background())
	}()
	_ = accepted.HandshakeContext(context.Background())
	if accepted.ConnectionState().HandshakeComplete {
		<-done
		return accepted, dialled
	}
	here.Close()
	<-done
	return accepted, dialled
}

// Machines whose certificates are not theirs are refused, so that nobody votes for another.
func TestAuthorize(t *testing.T) {
	secured := certificates(t)
	secured.NextProtos = []string{testProtocol}
	p := newPort(t, secured)
	folder := t.TempDir()
	if err := Create(folder, founding(3, 0)); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 100)
	nobody := func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody") }
	s, err := Open(Config{
		Folder: folder, Listener: p, Dial: nobody, TLS: secured, Patience: testPatience, tick: testTick,
		Authorize: func(m rdma.MachineID, _ tls.ConnectionState) error {
			if m == 2 {
				return errors.New("another's certificate")
			}
			return nil
		},
		Refused: func(_ net.Addr, reason error) { refused <- reason },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for from, want := range map[rdma.MachineID]error{1: nil, 2: refusals[notAuthorized]} {
		c, err := tls.Dial("tcp", p.Addr().String(), secured)
		if err != nil {
			t.Fatal(err)
		}
		f := founding(3, int(from))
		g := greeting{kind: ofMachine, from: from, to: 0, cluster: f.Cluster, founding: f.digest()}
		if _, err := c.Write(g.encode()); err != nil {
			t.Fatal(err)
		}
		if _, err := readReply(c); !errors.Is(err, want) {
			t.Errorf("machine %d: %v, want %v", from, err, want)
		}
		_ = c.Close()
	}
	if err := <-refused; !errors.Is(err, refusals[notAuthorized]) {
		t.Errorf("refused with %v", err)
	}
}

// A secured connection whose other side has not shown a certificate is refused, and one whose handshake
// has failed.
func TestSecuredByOthers(t *testing.T) {
	ours := certificates(t)
	server, client := ours.Clone(), ours.Clone()
	server.ClientAuth, client.ServerName = tls.RequireAndVerifyClientCert, "127.0.0.1"
	unverified := server.Clone()
	unverified.ClientAuth = tls.NoClientCert
	careless := client.Clone()
	careless.InsecureSkipVerify = true
	nobody := client.Clone()
	nobody.Certificates = nil
	for name, c := range map[string]struct {
		server, client *tls.Config
		isAccepted     error
		isDialled      error
	}{
		"both":               {server, client, nil, nil},
		"client not asked":   {unverified, client, errNotVerified, nil},
		"server not checked": {server, careless, nil, errNotVerified},
	} {
		here, there := handshake(t, c.server, c.client)
		if got, err := acceptTLS(context.Background(), ours, here); !errors.Is(err, c.isAccepted) || err == nil && got != net.Conn(here) {
			t.Errorf("%s, accepted: %v, %v", name, got, err)
		}
		if got, err := dialTLS(context.Background(), ours, there, "127.0.0.1:1"); !errors.Is(err, c.isDialled) || err == nil && got != net.Conn(there) {
			t.Errorf("%s, dialled: %v, %v", name, got, err)
		}
	}
	here, _ := handshake(t, server, nobody)
	if _, err := acceptTLS(context.Background(), ours, here); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("no certificate: %v", err)
	}
}

// With TLS, nobody without a certificate of the cluster gets past the handshake, on either side.
func TestTLS(t *testing.T) {
	ours, theirs := certificates(t), certificates(t)
	l := fakePeer(t, ours, testTick, func(c net.Conn) {
		secured := tls.Server(c, &tls.Config{Certificates: theirs.Certificates})
		_ = secured.HandshakeContext(context.Background())
	})
	reasonOf(t, l, "certificate")

	s := single(t, 1, Config{TLS: ours}, func(*logFile) {})
	c, err := tls.Dial("tcp", s.cfg.Listener.Addr().String(), &tls.Config{Certificates: theirs.Certificates, InsecureSkipVerify: true})
	if err == nil { // in TLS 1.3 the client hears of the refusal when it reads
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	if _, err := dialTLS(context.Background(), ours, nil, "no port"); err == nil || !strings.Contains(err.Error(), "no port") {
		t.Error(err)
	}
}
