package wire

import (
	"net"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// A connection is known to be closed by the other side, over a network and within the process,
// before anybody reads from it; one that only has bytes to be read is not.
func TestIsGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if isGone(server) {
		t.Error("a connection is gone that is open")
	}
	near, far := net.Pipe()
	defer far.Close()
	theirs := &pipe{Conn: far}
	end := &pipeEnd{Conn: near, other: theirs}
	if isGone(theirs) {
		t.Error("a pipe is gone that is open")
	}
	_, _ = client.Write([]byte{1})
	time.Sleep(20 * time.Millisecond)
	if isGone(server) {
		t.Error("a connection is gone on which something has come")
	}
	_ = client.Close() // and nobody has read it
	_ = end.Close()
	for begin := time.Now(); !isGone(server); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("a closed connection is not gone")
		}
	}
	if !isGone(theirs) {
		t.Error("a closed pipe is not gone")
	}
}

// rung is a clock whose timers ring when a test says so.
type rung struct {
	clock.System
	set []func() // the timers that are set
}

type noTimer struct{}

func (noTimer) Stop() bool { return false }

func (c *rung) AfterFunc(_ time.Duration, f func()) clock.Timer {
	c.set = append(c.set, f)
	return noTimer{}
}

// ring lets the only timer ring.
func (c *rung) ring(t *testing.T) {
	t.Helper()
	if len(c.set) != 1 {
		t.Fatalf("%d timers are set", len(c.set))
	}
	f := c.set[0]
	c.set = nil
	f()
}

// TestWatchRests: a server has a timer while statements run, and none while clients are only connected. A statement that begins
// later is watched all the same: it is killed at the second ring after which its client is gone.
func TestWatchRests(t *testing.T) {
	c := new(rung)
	m := newMux(Config{Clock: c})
	var killed []uint32
	m.watch.kill = func(id uint32) { killed = append(killed, id) }
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	theirs := &pipe{Conn: far}
	client := newConn(theirs, m, nil)
	m.mu.open[client] = struct{}{}
	rests := func(when string) {
		t.Helper()
		if len(c.set) != 0 {
			t.Errorf("%s there is a timer", when)
		}
	}
	rests("before a statement")
	for range 2 {
		m.watch.begin(client)
		m.watch.begin(client) // by another client
		c.ring(t)
		m.watch.end(client)
		c.ring(t)
		rests("after a statement")
	}
	m.watch.begin(client)
	theirs.left.Store(true)
	c.ring(t)
	if c.ring(t); len(killed) != 1 || killed[0] != client.id {
		t.Errorf("killed: %v, want the statement of connection %d", killed, client.id)
	}
	m.watch.stop()
	c.ring(t)
	rests("after the end")
	m.watch.begin(client)
	rests("after the end, at a statement,")
}
