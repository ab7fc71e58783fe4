package wire

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// openAs connects over TCP as a user without a password.
func (s *testServer) openAs(t *testing.T, user, options string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", fmt.Sprintf("%s@tcp(%s)/?%s", user, s.addr, options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// One connection beyond the limit is an administrator's; connections in the process do not
// count.
func TestTooManyConnections(t *testing.T) {
	s := startServer(t, Config{MaxConnections: 2})
	mustExec(t, s.openLocal(t), "create user u@localhost", "grant select on *.* to u@localhost")
	for range 2 {
		c, err := s.openAs(t, "u", "").Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	tooMany := func(user string) {
		t.Helper()
		_, err := s.openAs(t, user, "").Conn(t.Context())
		wantError(t, err, 1040, "08004", "Too many connections")
	}
	tooMany("u")
	root, err := s.openAs(t, "root", "").Conn(t.Context())
	if err != nil {
		t.Fatalf("the administrator: %v", err)
	}
	tooMany("root")
	if err := s.openLocal(t).Ping(); err != nil {
		t.Errorf("in the process: %v", err)
	}
	_ = root.Close()
	tooMany("u")
}

// flood keeps n connections open that never log in, each opened again when it is closed,
// until the test ends. say is what each sends.
func flood(t *testing.T, addr string, n int, say func(net.Conn)) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				end := context.AfterFunc(ctx, func() { _ = c.Close() })
				say(c)
				_, _ = io.Copy(io.Discard, c)
				end()
				_ = c.Close()
			}
		})
	}
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
}

// However many connections never log in, in whatever way, and are opened again when they are closed:
// a client that logs in gets in, through TLS and without.
func TestFloodKeepsNobodyOut(t *testing.T) {
	for _, tc := range []struct {
		name, tls string
		say       func(net.Conn)
	}{
		{"silent", "false", func(net.Conn) {}},
		{"slow", "skip-verify", func(c net.Conn) {
			for _, b := range loginPacket() {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
		}},
		{"half of TLS", "skip-verify", func(c net.Conn) {
			_, _ = c.Write(append([]byte{32, 0, 0, 1, 0, 0x0a, 0, 0}, make([]byte, 28)...))
			_, _ = c.Write([]byte{22, 3, 1, 1, 0, 1})
		}},
		{"a long packet", "false", func(c net.Conn) { _, _ = c.Write([]byte{0xff, 0xff, 0x00, 1, 0, 2, 0, 0}) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := startServer(t, Config{MaxConnections: 4, TLS: selfSigned(t)})
			flood(t, s.addr, 40, tc.say)
			eventually(t, "the flood is there", func() bool { return s.mux.count() >= UnauthenticatedMax(4) })
			begun := time.Now()
			if err := s.openAs(t, "root", "timeout=20s&tls="+tc.tls).PingContext(t.Context()); err != nil {
				t.Error(err)
			}
			t.Logf("in after %v", time.Since(begun))
			if n := s.mux.count(); n > UnauthenticatedMax(4)+8 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// Many that log in at once are not taken for a flood.
func TestCrowdGetsIn(t *testing.T) {
	const crowd = 200
	s := startServer(t, Config{MaxConnections: crowd, TLS: selfSigned(t)})
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			c, err := s.openAs(t, "root", "tls=skip-verify").Conn(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if err := c.PingContext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// The address that is thrown out is that with most connections, and of it the slowest.
func TestSlowestOfTheWorst(t *testing.T) {
	m := newMux(Config{}.WithDefaults())
	now := time.Now()
	for i, host := range []string{"single", "many", "many", "many", "two", "two"} {
		c := &conn{host: host, id: uint32(i), since: now.Add(time.Duration(i) * time.Second)}
		m.mu.entering[c] = struct{}{}
	}
	if c := m.slowestLocked(); c.host != "many" || c.id != 1 {
		t.Errorf("%s %d", c.host, c.id)
	}
}
