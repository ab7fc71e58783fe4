package farmsql

import (
	"bytes"
	"crypto/rand"
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
		noteCertificate(&x509.Certificate{NotAfter: end}, false, now, slog.New(slog.NewTextHandler(&said, nil)))
		if s := said.String(); !strings.Contains(s, c.says) || (s == "") != (c.says == "") {
			t.Errorf("%v before the end: said %q", c.left, s)
		}
	}
}

// TestFirstCertificateToEnd: what ends first of a certificate, the authorities that it has been given by, and one that the
// others know, is watched.
func TestFirstCertificateToEnd(t *testing.T) {
	a := testcert.New(t, t.TempDir()) // for an hour
	ends := func(after time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = time.Now().Add(after) }
	}
	load := func(cert, key string) tls.Certificate {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	between := load(a.Certify(t, "between", func(c *x509.Certificate) {
		c.NotAfter, c.IsCA, c.BasicConstraintsValid, c.KeyUsage = time.Now().Add(time.Minute), true, true, x509.KeyUsageCertSign
	}))
	below := load(a.Certify(t, "127.0.0.1", ends(2*time.Hour)))
	template := *below.Leaf
	der, err := x509.CreateCertificate(rand.Reader, &template, between.Leaf, below.Leaf.PublicKey, between.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	below.Certificate = [][]byte{der, between.Certificate[0], {1}} // what cannot be parsed is left out
	trusted := a.TLS(t, "127.0.0.2").RootCAs
	for name, c := range map[string]struct {
		pair  tls.Certificate
		roots *x509.CertPool
		want  string
	}{
		"its own":                        {load(a.Certify(t, "127.0.0.3", ends(time.Minute))), trusted, "127.0.0.3"},
		"the authority":                  {load(a.Certify(t, "127.0.0.4", ends(2*time.Hour))), trusted, "authority"},
		"an authority between them":      {below, trusted, "between"},
		"an authority that nobody knows": {load(a.Certify(t, "127.0.0.5", ends(2*time.Hour))), x509.NewCertPool(), "127.0.0.5"},
		"no authorities":                 {load(a.Certify(t, "127.0.0.6", ends(2*time.Hour))), nil, "127.0.0.6"},
	} {
		config := &tls.Config{Certificates: []tls.Certificate{c.pair}, RootCAs: c.roots}
		if got := firstToEnd(leafOf(config), config, time.Now()); got.Subject.CommonName != c.want {
			t.Errorf("%s: that of %s is watched, want %s", name, got.Subject.CommonName, c.want)
		}
	}
	var said bytes.Buffer
	noteCertificate(between.Leaf, true, time.Now(), slog.New(slog.NewTextHandler(&said, nil)))
	if s := said.String(); !strings.Contains(s, "the authority of this machine expires soon") || !strings.Contains(s, "authority=CN=between") && !strings.Contains(s, `authority="CN=between"`) || !strings.Contains(s, "--peer-ca") {
		t.Errorf("said %q", s)
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
