package wire

import (
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Clients of an address that is not served yet are told so; those that wait when it is are
// served, and so are later ones, with TLS as without.
func TestTurnAway(t *testing.T) {
	for _, tls := range []string{"false", "skip-verify"} {
		t.Run("tls="+tls, func(t *testing.T) { testTurnAway(t, tls) })
	}
}

func testTurnAway(t *testing.T, tls string) {
	s := startServer(t, Config{TLS: selfSigned(t)})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := inner.(*net.TCPListener)
	db, err := sql.Open("mysql", "root@tcp("+l.Addr().String()+")/?timeout=20s&readTimeout=20s&tls="+tls)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stop := TurnAway(l, 0, "it rains")
	for range 3 {
		var e *mysql.MySQLError
		if err := db.Ping(); !errors.As(err, &e) || e.Number != 1047 || !strings.Contains(e.Message, "it rains") {
			t.Errorf("turned away: %v", err)
		}
	}
	stop()
	stop()
	// Nobody is turned away before the patience is over.
	stop = TurnAway(l, time.Hour, "it still rains")
	pinged := make(chan error, 1)
	go func() { pinged <- db.Ping() }()
	time.Sleep(20 * time.Millisecond) // it waits, most likely
	stop()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), l) }()
	if err := <-pinged; err != nil {
		t.Errorf("who waited: %v", err)
	}
	if err := db.Ping(); err != nil {
		t.Errorf("served: %v", err)
	}
	_ = db.Close()
	_ = l.Close()
	<-served
}

// A listener that is closed meanwhile does not keep stop waiting.
func TestTurnAwayClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := TurnAway(l.(*net.TCPListener), 0, "")
	_ = l.Close()
	stop()
}
