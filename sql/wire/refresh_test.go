package wire

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// refreshing starts a server whose accounts are asked for through refresh.
func refreshing(t *testing.T, refresh func(context.Context) error) *testServer {
	t.Helper()
	provider := memory.NewDBProvider(memory.NewDatabase("test"))
	sc := &script{}
	e := newTestEngine(t, provider, sc)
	e.Refresh = refresh
	return startEngines(t, Config{}, sc, e)
}

// The accounts are asked for when what a client logs in with has come, in however many
// pieces and whatever comes with it, and not again once it is logged in.
func TestRefreshBeforeLogin(t *testing.T) {
	var asked atomic.Int32
	s := refreshing(t, func(context.Context) error { asked.Add(1); return nil })
	response := loginPacket()
	for what, write := range map[string]func(c net.Conn){
		"whole": func(c net.Conn) { _, _ = c.Write(response) },
		"in pieces": func(c net.Conn) {
			for _, b := range response {
				_, _ = c.Write([]byte{b})
			}
		},
		"with a part of what follows": func(c net.Conn) {
			_, _ = c.Write(append(bytes.Clone(response), 1, 0, 0)) // of COM_PING
			time.Sleep(time.Millisecond)
			_, _ = c.Write([]byte{0, 14})
		},
	} {
		asked.Store(0)
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		r := &rawClient{c}
		r.read(t)
		write(c)
		if p := r.read(t); p[0] != 0 {
			t.Errorf("%s: %q", what, p)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%s: asked %d times", what, n)
		}
		_ = c.Close()
	}
}

// If the accounts cannot be read, a client that logs in is told why.
func TestRefreshFails(t *testing.T) {
	s := refreshing(t, func(context.Context) error { return errors.New("it rains") })
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	r := &rawClient{c}
	r.read(t)
	_, _ = c.Write(loginPacket())
	if p := r.read(t); p[0] != 0xff || !strings.Contains(string(p), "it rains") {
		t.Errorf("%q", p)
	}
}

// Statements about accounts are run again after a conflict.
func TestAccountStatementsAreRetried(t *testing.T) {
	for _, q := range []string{"CREATE USER u", "DROP USER u", "CREATE ROLE r", "DROP ROLE r", "GRANT SELECT ON d.* TO u", "GRANT r TO u", "REVOKE SELECT ON d.* FROM u", "REVOKE r FROM u", "RENAME USER u TO v", "ALTER USER u IDENTIFIED BY 'x'"} {
		stmt, err := sqlparser.Parse(q)
		if err != nil {
			t.Fatal(err)
		}
		if !retryable(q, stmt) {
			t.Errorf("%s: %T is not run again", q, stmt)
		}
	}
}
