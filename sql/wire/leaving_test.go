package wire

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dolthub/vitess/go/mysql"
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
	eventually(t, "the connection to end", func() bool {
		conns[0].deadline.Lock()
		defer conns[0].deadline.Unlock()
		return conns[0].deadline.stopped
	})
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
