package peerport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/testcert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is a port and what clients need.
type rig struct {
	t       *testing.T
	port    *Port
	refused chan error
	member  *tls.Config // of a machine that the authority has certified
}

func newRig(t *testing.T) *rig {
	a := testcert.New(t, t.TempDir())
	r := &rig{t: t, refused: make(chan error, 100), member: member(t, a, a)}
	var err error
	r.port, err = Open("127.0.0.1:0", r.member, func(_ net.Addr, reason error) { r.refused <- reason })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.port.Close() })
	return r
}

// member returns the TLS configuration of a machine that own has certified, and that trusts others.
func member(t *testing.T, own, others *testcert.Authority) *tls.Config {
	cert, key := own.Certify(t, "127.0.0.1", nil)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(others.File)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool, ServerName: "127.0.0.1"}
}

// dial connects to the port, and reads the first byte that the machine sends.
func (r *rig) dial(config *tls.Config, of Protocol) (first byte, err error) {
	c, err := tls.Dial("tcp", r.port.Address().String(), ClientConfig(config, of))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var b [1]byte
	_, err = io.ReadFull(c, b[:])
	return b[0], err
}

// answer accepts connections of a protocol, and sends each a byte.
func (r *rig) answer(of Protocol, b byte) net.Listener {
	l := r.port.Listener(of)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{b})
			_ = c.Close()
		}
	}()
	return l
}

// TestProtocols: each connection comes to the listener of its protocol, and a protocol can get another
// listener when the first is closed.
func TestProtocols(t *testing.T) {
	r := newRig(t)
	all := map[Protocol]byte{Operations: 'o', Store: 's', Join: 'j'}
	for range 2 {
		var listeners []net.Listener
		for of, b := range all {
			listeners = append(listeners, r.answer(of, b))
		}
		for of, b := range all {
			if got, err := r.dial(r.member, of); err != nil || got != b {
				t.Errorf("%q: %c, %v", of, got, err)
			}
		}
		for _, l := range listeners {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept of a closed listener: %v", err)
			}
		}
	}
}

// TestStrangers: without a certificate of the authority there is Join, and nothing else.
func TestStrangers(t *testing.T) {
	r := newRig(t)
	for of, b := range map[Protocol]byte{Operations: 'o', Store: 's', Join: 'j'} {
		defer r.answer(of, b).Close()
	}
	nobody := r.member.Clone()
	nobody.Certificates = nil
	foreign := member(t, testcert.New(t, t.TempDir()), testcert.New(t, t.TempDir()))
	foreign.RootCAs = r.member.RootCAs
	for name, config := range map[string]*tls.Config{"no certificate": nobody, "another authority's": foreign} {
		for _, of := range []Protocol{Operations, Store} {
			if b, err := r.dial(config, of); err == nil {
				t.Errorf("%s, %q: got %c", name, of, b)
			}
			<-r.refused
		}
	}
	if b, err := r.dial(nobody, Join); err != nil || b != 'j' {
		t.Errorf("Join without a certificate: %c, %v", b, err)
	}
	if _, err := r.dial(foreign, Join); err == nil {
		t.Error("Join with a certificate of another authority was let in")
	}
}

// TestRefusals: a protocol that nobody serves, one that the port does not know, and garbage.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	if _, err := r.dial(r.member, Store); err == nil {
		t.Error("a protocol without a listener answers")
	}
	if err := <-r.refused; !errors.Is(err, ErrNobody) {
		t.Errorf("refused with %v", err)
	}
	l := r.port.Listener(Store)
	if _, err := r.dial(r.member, Store); err == nil {
		t.Error("a connection that nobody accepts was answered")
	}
	if err := <-r.refused; !errors.Is(err, ErrNobody) {
		t.Errorf("refused with %v", err)
	}
	_ = l.Close()
	if _, err := r.dial(r.member, "http/1.1"); err == nil {
		t.Error("an unknown protocol answers")
	}
	<-r.refused
	c, err := net.Dial("tcp", r.port.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-r.refused
	_ = c.Close()
}

// TestClose: closing ends handshakes that are under way, and connections that nobody accepts.
func TestClose(t *testing.T) {
	r := newRig(t)
	silent, err := net.Dial("tcp", r.port.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l := r.port.Listener(Store)
	waiting, err := tls.Dial("tcp", r.port.Address().String(), ClientConfig(r.member, Store))
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if err := r.port.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := waiting.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that nobody has accepted is open")
	}
}

// TestOpen: a port needs a certificate and an authority, and an address that is free.
func TestOpen(t *testing.T) {
	r := newRig(t)
	nobody := func(net.Addr, error) {}
	for name, config := range map[string]*tls.Config{
		"nothing": nil, "no certificate": {ClientCAs: r.member.ClientCAs}, "no authority": {Certificates: r.member.Certificates},
	} {
		if _, err := Open("127.0.0.1:0", config, nobody); !errors.Is(err, errTLS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(r.port.Address().String(), r.member, nobody); err == nil {
		t.Error("two ports have one address")
	}
	defer func() {
		if recover() == nil {
			t.Error("a protocol has two listeners")
		}
	}()
	defer r.port.Listener(Store).Close()
	r.port.Listener(Store)
}
