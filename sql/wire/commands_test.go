package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/txn/wait"
)

// While clients cannot be served, nobody is let in, and COM_PING says so on a connection that
// exists; once they can be served, that connection works as before.
func TestUnavailable(t *testing.T) {
	var away atomic.Bool
	s := startServer(t, Config{Available: func(context.Context) error {
		if away.Load() {
			return &wait.UnavailableError{Needs: "a lease", Why: "machine 1 does not answer"}
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

// COM_STATISTICS answers with MySQL's line, with and without TLS.
func TestStatistics(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t)})
	c := dialRaw(t, s.addr)
	pattern := regexp.MustCompile(`^Uptime: [1-9]\d*  Threads: 1  Questions: (\d+)  Slow queries: \d+  Queries per second avg: \d+\.\d{3}$`)
	questions := func() int {
		m := pattern.FindSubmatch(c.command(t, []byte{comStatistics}))
		if m == nil {
			t.Fatal("not MySQL's line")
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	before := questions()
	c.exec(t, "select 1")
	if after := questions(); after != before+1 {
		t.Errorf("%d questions, then %d", before, after)
	}
	if got := c.exec(t, "select 2"); !strings.Contains(got, "2") {
		t.Errorf("the connection is out of step: %q", got)
	}
	// A request that arrives in pieces is answered like others.
	for _, b := range []byte{1, 0, 0, 0, comStatistics} {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if p := c.read(t); !pattern.Match(p) {
		t.Errorf("in pieces: %q", p)
	}
}

// COM_SHUTDOWN and SHUTDOWN end the server for clients with the privilege, and for nobody else.
func TestShutdown(t *testing.T) {
	var ended atomic.Int32
	s := startServer(t, Config{Shutdown: func() { ended.Add(1) }})
	local := s.openLocal(t)
	mustExec(t, local, "create user u@localhost", "create user stopper@localhost", "grant shutdown on *.* to stopper@localhost",
		"grant select on test.* to u@localhost")
	asked := func(user string) (request, statement error) {
		c := dialRawAs(t, s.addr, user)
		c.write(t, 0, []byte{comShutdown, 0})
		if p := c.read(t); p[0] != 0 {
			request = fmt.Errorf("%d: %s", binary.LittleEndian.Uint16(p[1:]), p)
		}
		_, statement = s.openAs(t, user, "").Exec("  shutdown ;")
		return request, statement
	}
	request, statement := asked("u")
	if request == nil || !strings.Contains(request.Error(), "1227: ") || ended.Load() != 0 {
		t.Errorf("without the privilege: %v, %d", request, ended.Load())
	}
	wantError(t, statement, 1227, "42000", "SHUTDOWN")
	for i, user := range []string{"stopper", "root"} {
		request, statement := asked(user)
		if request != nil || statement != nil {
			t.Errorf("%s: %v, %v", user, request, statement)
		}
		// COM_SHUTDOWN is answered before it is done.
		eventually(t, "twice each", func() bool { return ended.Load() == int32(2*i+2) })
	}
	part := startServer(t, Config{})
	_, err := part.open(t, "").Exec("shutdown")
	wantError(t, err, 1235, "42000", "end the program")
}

// While clients cannot be served those that use TLS hear it when they connect and from COM_PING,
// too.
func TestUnavailableThroughTLS(t *testing.T) {
	var away atomic.Bool
	s := startServer(t, Config{TLS: selfSigned(t), Available: func(context.Context) error {
		if away.Load() {
			return &wait.UnavailableError{Needs: "a lease", Why: "machine 1 does not answer"}
		}
		return nil
	}})
	kept, err := s.open(t, "tls=skip-verify").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	away.Store(true)
	wantError(t, kept.PingContext(t.Context()), 1047, "08S01", "machine 1 does not answer")
	wantError(t, s.open(t, "tls=skip-verify").Ping(), 1047, "08S01", "machine 1 does not answer")
	away.Store(false)
	if err := kept.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}
