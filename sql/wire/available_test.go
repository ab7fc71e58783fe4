package wire

import (
	"context"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// While clients cannot be served nobody is let in and COM_PING says so, on the same
// connection that is as before when they can.
func TestUnavailable(t *testing.T) {
	var away atomic.Bool
	s := startServer(t, Config{Available: func(context.Context) error {
		if away.Load() {
			return &txn.UnavailableError{Needs: "a lease", Why: "machine 1 does not answer"}
		}
		return nil
	}})
	db := s.open(t, "")
	kept, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	away.Store(true)
	wantError(t, kept.PingContext(t.Context()), 1047, "08S01", "machine 1 does not answer")
	wantError(t, s.open(t, "").Ping(), 1047, "08S01", "machine 1 does not answer")
	mustExec(t, s.openLocal(t), "select 1") // whoever has the database open gets in
	away.Store(false)
	if err := kept.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	mustExec(t, kept, "select 1")
}

// exhausted is a listener for which there are no descriptors until one is given back.
type exhausted struct {
	net.Listener
	failures atomic.Int32
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.failures.Add(-1) == 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A client for which there is no descriptor is refused, and does not hang; the next gets in.
func TestNoDescriptors(t *testing.T) {
	s := startServer(t, Config{})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &exhausted{Listener: inner}
	l.failures.Store(1) // the first attempt fails, and the one with the spare descriptor does not
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 256)
	n, _ := c.Read(b)
	if !strings.Contains(string(b[:n]), "Too many connections") {
		t.Errorf("without descriptors: %q", b[:n])
	}
	_ = c.Close()
	if c, err = net.Dial("tcp", inner.Addr().String()); err != nil {
		t.Fatal(err)
	}
	// The greeting, whose header may come before the rest.
	for n = 0; err == nil && n < len(b) && !strings.Contains(string(b[:n]), "farmsql"); {
		var more int
		more, err = c.Read(b[n:])
		n += more
	}
	if err != nil {
		t.Errorf("with descriptors again: %q, %v", b[:n], err)
	}
	_ = c.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
