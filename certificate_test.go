package farmsql

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/testcert"
)

// TestCertificateNotices: a machine says some times before its certificate ends, and from then on every
// day, that it does.
func TestCertificateNotices(t *testing.T) {
	end := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, c := range []struct {
		left, next time.Duration
		says       string
	}{
		{400 * day, 370 * day, ""},
		{30 * day, 23 * day, "expires soon"},
		{8 * day, day, "expires soon"},
		{7 * day, 6 * day, "expires soon"},
		{day, day, "expires soon"},
		{0, day, "has expired"},
		{-50 * day, day, "has expired"},
	} {
		now := end.Add(-c.left)
		if next := nextNotice(end, now).Sub(now); next != c.next {
			t.Errorf("%v before the end: the next line is due after %v, want %v", c.left, next, c.next)
		}
		var said bytes.Buffer
		noteCertificate(&x509.Certificate{NotAfter: end}, now, slog.New(slog.NewTextHandler(&said, nil)))
		if s := said.String(); !strings.Contains(s, c.says) || (s == "") != (c.says == "") {
			t.Errorf("%v before the end: said %q", c.left, s)
		}
	}
}

// TestWatchedCertificateEnds: the end of a certificate is logged while the machine runs.
func TestWatchedCertificateEnds(t *testing.T) {
	a := testcert.New(t, t.TempDir())
	cert, key := a.Certify(t, "127.0.0.1", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(2 * time.Second) })
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	said := &saidLines{lines: make(chan string, 8)}
	stop := watchCertificate(&tls.Config{Certificates: []tls.Certificate{pair}}, clock.System{}, slog.New(slog.NewTextHandler(said, nil)))
	for line := range said.lines {
		if strings.Contains(line, "has expired") {
			break
		}
	}
	stop()
	watchCertificate(nil, clock.System{}, slog.Default())()
	watchCertificate(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{{1}}}}}, clock.System{}, slog.Default())()
}

// saidLines passes on what is logged, line by line.
type saidLines struct {
	mu    sync.Mutex
	lines chan string
}

func (s *saidLines) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines <- string(b)
	return len(b), nil
}
