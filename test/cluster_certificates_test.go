package test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/testcert"
)

// TestCertificatesOutOfTime: serve refuses a certificate that has expired, or is not valid yet. So do the
// machines of a cluster when one connects to them with such a certificate, as a host does whose clock is
// wrong. They log that, and what mends it.
func TestCertificatesOutOfTime(t *testing.T) {
	f := newFleet(t, 2, 2, "")
	f.peers = newPeers(t)
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	early := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }
	for _, c := range []struct {
		change func(*x509.Certificate)
		says   string
	}{{expired, "is after"}, {early, "is before"}} {
		f.peers.certify(t, 1, c.change)
		f.machines[1].refuse(1, "--peer-cert", "expired or is not yet valid", c.says, "make another one, or set the clock")
	}
	delete(f.peers.certified, 1)

	f.start()
	f.awaitWhole()
	for _, c := range []struct {
		at     int // the log has a line about refused connections only every 10 s
		change func(*x509.Certificate)
		says   string
	}{{0, expired, "is after"}, {1, early, "is before"}} {
		cert, key := f.peers.authority.Certify(t, f.peers.host(7), c.change)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		socket, err := net.Dial("tcp", f.peers.address(c.at))
		if err != nil {
			t.Fatal(err)
		}
		stranger := tls.Client(socket, &tls.Config{RootCAs: pool(t, f.peers.authority), ServerName: f.peers.host(c.at), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
		_, _ = stranger.Write(make([]byte, 64)) // the other side says what it thinks of it after this
		isRefused(t, stranger)
		f.awaitLog(f.machines[c.at], "connection from another host refused", "expired or is not yet valid", c.says, "give the machine there another certificate")
	}
	f.awaitServing()
}

// TestCertificateExpires: a machine's certificate expires while the cluster runs. Connections stay, and
// clients notice nothing, but the log of the machine says what has happened and what
// mends it. When another machine is killed and comes back, the two refuse each other, and nobody ends. With
// another certificate the cluster is whole again.
func TestCertificateExpires(t *testing.T) {
	const victim = 1
	f, until := startWithExpiry(t, victim)
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	time.Sleep(time.Until(until))
	cm := f.cm()
	f.awaitLog(f.machines[victim], "the certificate of this machine has expired", "give this machine another certificate")
	before := l.transfers.Load()
	f.wait("transfers after the certificate has expired", func() bool { return l.transfers.Load() > before+5 })
	l.end()

	other := f.machines[2]
	if cm == other {
		other = f.machines[0]
	}
	other.kill()
	other.mu.Lock()
	other.lines = nil // so that the next one is found among those of its new life
	other.mu.Unlock()
	other.start()
	f.awaitLog(other, "", "expired or is not yet valid", "give the machine there another certificate")

	f.machines[victim].kill()
	delete(f.peers.certified, victim)
	f.machines[victim].start()
	f.awaitWhole()
	for _, m := range f.machines {
		l.verify(m)
	}
}

// startWithExpiry starts a fleet of three machines, one of which has a certificate that expires soon after
// the fleet is whole. It returns that time.
func startWithExpiry(t *testing.T, victim int) (*fleet, time.Time) {
	t.Helper()
	for life := 10 * time.Second; ; life *= 2 { // longer on a computer on which starting takes long
		f := newFleet(t, 3, 3, "")
		f.peers = newPeers(t)
		until := time.Now().Add(life)
		f.peers.certify(t, victim, func(c *x509.Certificate) { c.NotAfter = until })
		f.start()
		f.awaitWhole()
		if time.Now().Before(until) {
			return f, until
		}
		f.killAll()
	}
}

// certify gives a machine a certificate that differs from an ordinary one.
func (p *peers) certify(t *testing.T, id int, change func(*x509.Certificate)) {
	t.Helper()
	cert, key := p.authority.Certify(t, p.host(id), change)
	p.certified[id] = [2]string{cert, key}
}

func pool(t *testing.T, a *testcert.Authority) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(a.File)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	return pool
}

// awaitLog waits until a machine has logged a message, or any if it is empty, in a line with all of the
// texts.
func (f *fleet) awaitLog(m *machine, message string, texts ...string) {
	f.t.Helper()
	f.wait("machine to log: "+message+" "+strings.Join(texts, " "), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, line := range m.lines {
			found := strings.Contains(line, `"msg":"`+message)
			for _, text := range texts {
				found = found && strings.Contains(line, text)
			}
			if found {
				return true
			}
		}
		return false
	})
}
