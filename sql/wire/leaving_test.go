package wire

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"golang.org/x/sys/unix"
)

// A request that arrives while the server closes is answered: the client knows then that it was not executed.
// So is a longer one, which arrives in pieces, and one through TLS.
func TestRequestsOnTheWayAreAnswered(t *testing.T) {
	s := startServer(t, Config{TLS: selfSigned(t), lastRequestTime: time.Minute, DrainTimeout: time.Minute})
	short, long := dialRaw(t, s.addr), dialRaw(t, s.addr)
	secured, err := s.open(t, "tls=skip-verify").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer secured.Close()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	eventually(t, "all connections to end", func() bool {
		return !slices.ContainsFunc(s.mux.connections(func(*conn) bool { return true }), func(c *conn) bool {
			c.deadline.Lock()
			defer c.deadline.Unlock()
			return !c.deadline.stopped
		})
	})
	for _, c := range []struct {
		client *rawClient
		query  string
	}{{short, "select 1"}, {long, "select '" + strings.Repeat("x", 1<<20) + "'"}} {
		c.client.write(t, 0, append([]byte{mysql.ComQuery}, c.query...))
		answer := c.client.read(t)
		if answer[0] != 0xff || binary.LittleEndian.Uint16(answer[1:]) != 1053 {
			t.Errorf("%d bytes: %q", len(c.query), answer)
		}
	}
	_, err = secured.ExecContext(t.Context(), "select 1")
	wantError(t, err, 1053, "08S01", "Server shutdown in progress")
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A request of which a part had been read when the server closed is answered, too.
func TestHalfARequestIsAnswered(t *testing.T) {
	s := startServer(t, Config{lastRequestTime: time.Minute, DrainTimeout: time.Minute})
	c := dialRaw(t, s.addr)
	conns := s.mux.connections(func(*conn) bool { return true })
	if len(conns) != 1 {
		t.Fatalf("%d connections", len(conns))
	}
	received := func() uint64 { return conns[0].counts[bytesReceived].Load() }
	before := received()
	request := packet(0, append([]byte{mysql.ComQuery}, "select 1"...))
	if _, err := c.Write(request[:packetHeaderBytes+1]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the beginning to be read", func() bool { return received() > before })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	isLeaving(t, conns[0])
	if _, err := c.Write(request[packetHeaderBytes+1:]); err != nil {
		t.Fatal(err)
	}
	if answer := c.read(t); answer[0] != 0xff || binary.LittleEndian.Uint16(answer[1:]) != 1053 {
		t.Errorf("%q", answer)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Requests that have no answer, of which a client does not wait for the end, do not get the one of the request behind them.
func TestRequestsWithoutAnAnswerAreSkipped(t *testing.T) {
	s := startServer(t, Config{lastRequestTime: time.Minute, DrainTimeout: time.Minute})
	c := dialRaw(t, s.addr)
	statement := []byte{1, 0, 0, 0}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	at := s.mux.connections(func(*conn) bool { return true })[0]
	isLeaving(t, at)
	c.write(t, 0, append(append([]byte{mysql.ComStmtSendLongData}, statement...), make([]byte, 1<<16)...))
	eventually(t, "the server to read the request", func() bool { return unread(t, at) == 0 })
	c.write(t, 0, append([]byte{mysql.ComStmtClose}, statement...))
	c.write(t, 5, append([]byte{mysql.ComQuery}, "select 1"...)) // the number of its packet shows which request the answer is for
	var answer [packetHeaderBytes + 3]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		t.Fatal(err)
	}
	if answer[3] != 6 || answer[4] != 0xff || binary.LittleEndian.Uint16(answer[5:]) != 1053 {
		t.Errorf("%q", answer)
	}
	rest := make([]byte, packetLength(answer[:])-3)
	if _, err := io.ReadFull(c, rest); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind the answer: %d bytes, %v", n, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A client that goes, or sends nothing but what has no answer, is told nothing.
func TestNothingToAnswer(t *testing.T) {
	s := startServer(t, Config{lastRequestTime: time.Minute, DrainTimeout: time.Minute})
	c := dialRaw(t, s.addr)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	isLeaving(t, s.mux.connections(func(*conn) bool { return true })[0])
	c.write(t, 0, []byte{mysql.ComQuit})
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A request of whose header a part had been read is answered, too.
func TestHalfAHeaderIsAnswered(t *testing.T) {
	s := startServer(t, Config{lastRequestTime: time.Minute, DrainTimeout: time.Minute})
	c := dialRaw(t, s.addr)
	at := s.mux.connections(func(*conn) bool { return true })[0]
	request := packet(0, append([]byte{mysql.ComQuery}, "select 1"...))
	if _, err := c.Write(request[:2]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to read two bytes", func() bool { return unread(t, at) == 0 })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	isLeaving(t, at)
	if _, err := c.Write(request[2:]); err != nil {
		t.Fatal(err)
	}
	if answer := c.read(t); answer[0] != 0xff || binary.LittleEndian.Uint16(answer[1:]) != 1053 {
		t.Errorf("%q", answer)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// isLeaving waits until a connection ends with its server.
func isLeaving(t *testing.T, c *conn) {
	t.Helper()
	eventually(t, "the connection to end", func() bool {
		c.deadline.Lock()
		defer c.deadline.Unlock()
		return c.deadline.stopped
	})
}

// unread returns how many bytes have come at a connection and were not read.
func unread(t *testing.T, c *conn) (n int) {
	t.Helper()
	raw, err := c.Conn.(*socket).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err = raw.Control(func(fd uintptr) { n, failed = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return n
}

// A connection on which nothing is on its way ends soon, and so does the server.
func TestNothingOnTheWay(t *testing.T) {
	s := startServer(t, Config{lastRequestTime: time.Millisecond})
	c := dialRaw(t, s.addr)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection has not ended")
	}
}
