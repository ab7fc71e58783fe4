package test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster/zookeepertest"
	"github.com/farmsql/farmsql/internal/testcert"
)

// TestHosts: a cluster of three hosts, over TCP with TLS, while clients change rows at all machines. Its
// configuration is in ZooKeeper, or the machines keep it themselves, and a fourth joins.
// Machines are killed and stopped, hosts are cut off, and two hosts do not reach each other, in one
// direction or in both. Each time the others go on, and the machine comes back. Nothing that was
// acknowledged is lost.
func TestHosts(t *testing.T) {
	const n = 3
	t.Run("zookeeper", func(t *testing.T) {
		h := newHosts(t, n)
		f := newFleet(t, n, n, "zk://"+zookeepertest.StartAt(t, h.here()).Address+"/farmsql/hosts")
		f.hosts, f.peers = h, newPeersAt(t, h.net)
		f.start()
		f.awaitWhole()
		f.failHosts()
	})
	t.Run("raft", func(t *testing.T) {
		h := newHosts(t, n+1)
		f := newJoiningFleet(t, n, newPeersAt(t, h.net))
		f.hosts = h
		f.start()
		f.awaitWhole()
		f.grow()
		f.failHosts()
	})
}

// failHosts does what TestHosts says.
func (f *fleet) failHosts() {
	t, h, n := f.t, f.hosts, len(f.machines)
	rounds := 1
	if nightly {
		rounds = 20
	}
	f.letIn()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}
	l.prepare()
	l.begin(l.transfer, l.replace, l.lookup)
	faults := []struct {
		name string
		do   func(victim, other *machine) (mend func())
	}{
		{"killed", func(victim, _ *machine) func() { victim.kill(); return victim.start }},
		{"stopped", func(victim, _ *machine) func() {
			victim.signal(syscall.SIGSTOP)
			return func() { victim.signal(syscall.SIGCONT) }
		}},
		{"cut off", func(victim, _ *machine) func() { return h.cut(victim.id) }},
		{"does not reach another", func(victim, other *machine) func() { return h.drop(victim.id, other.id) }},
		{"and another do not reach each other", func(victim, other *machine) func() {
			there, back := h.drop(victim.id, other.id), h.drop(other.id, victim.id)
			return func() { there(); back() }
		}},
	}
	for round := range rounds {
		for i, fault := range faults {
			victim := f.machines[(round+i)%n]
			other := f.machines[(victim.id+1)%n]
			before := f.configuration().ID
			begin := time.Now()
			mend := fault.do(victim, other)
			f.wait("the others to go on without a machine", func() bool { return f.configuration().ID > before })
			without := time.Since(begin)
			mend()
			f.awaitWhole()
			t.Logf("machine %d %s: without it after %v, whole after %v", victim.id, fault.name, without.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
		}
	}
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
	t.Log(l)
}

// TestStrangers: a cluster over TCP with TLS serves on while strangers connect to a machine's port: one
// that sends garbage, one without a certificate, and one with a certificate of another authority. They
// are refused, and that is logged. A machine cannot start at an address that another one has.
func TestStrangers(t *testing.T) {
	f := newFleet(t, 2, 2, "")
	f.peers = newPeers(t)
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace)
	at := f.peers.address(0)

	garbage, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := garbage.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	isRefused(t, garbage)

	others := testcert.New(t, t.TempDir())
	cert, key := others.Certify(t, "127.0.0.1", nil)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	ours := x509.NewCertPool()
	pem, err := os.ReadFile(f.peers.authority.File)
	if err != nil || !ours.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	for name, pairs := range map[string][]tls.Certificate{"no certificate": nil, "another authority": {pair}} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		secured := tls.Client(c, &tls.Config{RootCAs: ours, ServerName: f.peers.host(0), Certificates: pairs, MinVersion: tls.VersionTLS13})
		if _, err := secured.Write(make([]byte, 64)); err != nil {
			t.Errorf("%s: %v", name, err) // the server says what it thinks of it after the client has written
		}
		isRefused(t, secured)
	}

	other := newFleet(t, 2, 2, "")
	other.peers = f.peers // of another cluster, and with the same addresses
	other.machines[0].refuse(1, "--advertise", "address already in use")

	f.wait("a refusal to be logged", func() bool {
		_, found := f.machines[0].find(time.Time{}, func(e *event) bool { return strings.HasPrefix(e.Message, "connection from another host refused") })
		return found
	})
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
}

// isRefused waits for the other side to end a connection.
func isRefused(t *testing.T, c net.Conn) {
	t.Helper()
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	for {
		_, err := c.Read(b) // an alert of TLS may come first
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a stranger is still connected after %v", startTimeout)
		}
		if err != nil {
			return
		}
	}
}
