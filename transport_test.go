package farmsql

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/tcp"
	"github.com/farmsql/farmsql/rdma/verbs"
	"github.com/farmsql/farmsql/recovery/membership"
)

// TestVerbsNeedATag: a program that was built without verbs says with which tag and packages to build it; one that was built with them takes the setting, and
// what is wrong with the address is said as for tcp.
func TestVerbsNeedATag(t *testing.T) {
	c := Config{Folder: t.TempDir(), Cluster: "file:///nowhere/configuration", Transport: TransportVerbs, Advertise: "127.0.0.1:7070"}
	err := c.Validate()
	if verbs.Available() == nil {
		if err != nil {
			t.Error(err)
		}
		if c.Advertise = "db1"; c.Validate() == nil {
			t.Error("an address without a port is taken")
		}
		return
	}
	for _, want := range []string{`(--transport) is "verbs"`, "-tags verbs", "libibverbs-dev", "pkg-config", "ibverbs-providers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTransportSettings(t *testing.T) {
	const file, zk = "file:///nowhere/configuration", "zk://192.0.2.1:2181/farmsql"
	for name, c := range map[string]struct {
		change func(*Config)
		says   string // "" if it is right
	}{
		"shm":              {func(c *Config) { c.Cluster = file }, ""},
		"tcp on this host": {func(c *Config) { c.Cluster, c.Transport, c.Advertise = file, TransportTCP, "127.0.0.1:7070" }, ""},
		"tcp": {func(c *Config) {
			c.Cluster, c.Transport, c.Advertise, c.PeerTLS = zk, TransportTCP, "db1:7070", new(tls.Config)
		}, ""},

		"no cluster":         {func(c *Config) { c.Transport = TransportTCP }, "and no Cluster (--cluster)"},
		"folder, no cluster": {func(c *Config) { c.SharedFolder = "/dev/shm/x" }, "and no Cluster (--cluster)"},
		"unknown":            {func(c *Config) { c.Cluster, c.Transport = zk, "udp" }, `(--transport) is "udp": must be "shm", "tcp" or "verbs"`},
		"card for tcp": {func(c *Config) {
			c.Cluster, c.Transport, c.Advertise, c.RDMA.Device = file, TransportTCP, "127.0.0.1:7070", "mlx5_0"
		}, "(--rdma-device, --rdma-port, --rdma-gid) is given: it is for Transport (--transport) verbs"},
		"card for shm": {func(c *Config) { c.Cluster, c.RDMA.Port = file, 2 }, "it is for Transport (--transport) verbs"},
		"no GID": {func(c *Config) {
			c.Cluster, c.Transport, c.Advertise, c.RDMA.GID = file, TransportVerbs, "127.0.0.1:7070", "first"
		}, `(--rdma-gid) is "first"`},
		"address for shm": {func(c *Config) { c.Cluster, c.Advertise = zk, "db1:7070" }, "for Transport (--transport) tcp"},
		"no address":      {func(c *Config) { c.Cluster, c.Transport = zk, TransportTCP }, `(--advertise) is ""`},
		"no host":         {func(c *Config) { c.Cluster, c.Transport, c.Advertise = zk, TransportTCP, ":7070" }, "must be HOST:PORT"},
		"no port":         {func(c *Config) { c.Cluster, c.Transport, c.Advertise = zk, TransportTCP, "db1" }, "must be HOST:PORT"},
		"port 0":          {func(c *Config) { c.Cluster, c.Transport, c.Advertise = zk, TransportTCP, "127.0.0.1:0" }, "must be HOST:PORT"},
		"folder for tcp": {func(c *Config) {
			c.Cluster, c.Transport, c.Advertise, c.SharedFolder = file, TransportTCP, "127.0.0.1:7070", "/dev/shm/x"
		}, "for Transport (--transport) shm"},
		"a file for several hosts": {func(c *Config) {
			c.Cluster, c.Transport, c.Advertise, c.PeerTLS = file, TransportTCP, "192.0.2.7:7070", new(tls.Config)
		}, "machines of several hosts need zk://"},
		"no certificates": {func(c *Config) { c.Cluster, c.Transport, c.Advertise = zk, TransportTCP, "192.0.2.7:7070" }, "(--peer-ca, --peer-cert, --peer-key) is missing"},
	} {
		cfg := Config{Folder: t.TempDir()}
		c.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// configurationOf returns a configuration in which machines have addresses.
func configurationOf(revision uint64, addresses map[rdma.MachineID]string) *cluster.Configuration {
	c := &cluster.Configuration{Revision: revision}
	for m, a := range addresses {
		c.Machines, c.Address = append(c.Machines, m), append(c.Address, a)
	}
	return c
}

// loads is a store that has one configuration.
type loads struct {
	cluster.Store
	c   *cluster.Configuration
	err error
}

func (l loads) Load() (*cluster.Configuration, error) { return l.c, l.err }

func TestAddressBook(t *testing.T) {
	b := newAddressBook(loads{c: configurationOf(2, map[rdma.MachineID]string{0: "tcp:a:1", 1: "tcp:b:1", 2: "shm:/dev/shm/x/2"})})
	is := func(m rdma.MachineID, want string) {
		t.Helper()
		if a, ok := b.resolve(m); a != want || ok != (want != "") {
			t.Errorf("machine %d: %q, %v, want %q", m, a, ok, want)
		}
	}
	is(0, "")
	if _, err := b.Load(); err != nil {
		t.Fatal(err)
	}
	is(0, "a:1")
	is(2, "")
	calls := 0
	events := b.listen(membership.Events{Applying: func(*cluster.Configuration) { calls++ }})
	events.Applying(configurationOf(3, map[rdma.MachineID]string{0: "tcp:c:1"}))
	is(0, "c:1")
	is(1, "b:1") // it is no longer a member, and may come back
	if _, err := b.Load(); err != nil {
		t.Fatal(err)
	}
	is(0, "c:1") // what was loaded is older
	if calls != 1 {
		t.Errorf("called %d times", calls)
	}
	b.Store = loads{err: cluster.ErrUnreachable}
	if _, err := b.Load(); !errors.Is(err, cluster.ErrUnreachable) {
		t.Error(err)
	}
	b.Store = loads{}
	if c, err := b.Load(); c != nil || err != nil {
		t.Error(c, err)
	}
}

// What happens often is logged at once, and then every ten seconds, with how often it has happened.
func TestPeerLog(t *testing.T) {
	var said bytes.Buffer
	now := time.Now()
	l := peerLog{log: slog.New(slog.NewTextHandler(&said, nil)), now: func() time.Time { return now }}
	lines := func(want ...string) {
		t.Helper()
		got := strings.Split(strings.TrimSpace(said.String()), "\n")
		said.Reset()
		if len(got) != len(want) {
			t.Fatalf("said %q, want %q", got, want)
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("said %q, want %q", got[i], want[i])
			}
		}
	}
	for range 3 {
		l.unreached(2, "192.0.2.7:7070", errors.New("no route"))
	}
	l.unreached(3, "", errors.New("no address"))
	l.refused(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 9}, errors.New("no certificate"))
	lines("peer=2 address=192.0.2.7:7070 reason=\"no route\"", "peer=3", "from=192.0.2.9:9 reason=\"no certificate\"")
	now = now.Add(peerLogEvery)
	l.unreached(2, "192.0.2.7:7070", errors.New("no route"))
	lines(`"more since the last line"=2`)
	for range 2 {
		l.silent(4, netip.MustParseAddrPort("192.0.2.8:7070"))
	}
	lines("no datagram of a machine arrives")
	now = now.Add(peerLogEvery)
	l.silent(4, netip.MustParseAddrPort("192.0.2.8:7070"))
	lines(`peer=4 address=192.0.2.8:7070 "more since the last line"=1`)
}

// A line about a certificate says whose it is, and what mends that.
func TestPeerLogMends(t *testing.T) {
	for _, c := range []struct {
		reason error
		mend   string
	}{
		{fmt.Errorf("tls: %w", x509.CertificateInvalidError{Reason: x509.Expired}), "give the machine there another certificate"},
		{errors.New("remote error: tls: expired certificate"), "this machine's certificate"},
		{errors.New("remote error: tls: bad certificate"), "this machine's certificate"},
		{fmt.Errorf("tls: %w", x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}), ""},
		{errors.New("no route"), ""},
	} {
		var said bytes.Buffer
		l := peerLog{log: slog.New(slog.NewTextHandler(&said, nil)), now: time.Now}
		l.unreached(2, "192.0.2.7:7070", c.reason)
		l.refused(&net.TCPAddr{}, c.reason)
		if strings.Count(said.String(), c.mend) < 2 || strings.Contains(said.String(), "mend=") != (c.mend != "") {
			t.Errorf("%v: said %q, want %q", c.reason, said.String(), c.mend)
		}
	}
}

// The kernel gives the lease thread what begins as its messages do.
func TestMagicOfLeases(t *testing.T) {
	if lease.LineMagic != tcp.LineMagic {
		t.Errorf("lease messages begin with %q, and those of a line with %q", lease.LineMagic, tcp.LineMagic)
	}
}

// TestUnpinnedIsLogged: memory that a card cannot pin is logged, but not each time, and apart from connections that are refused.
func TestUnpinnedIsLogged(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1, 0)
	l := peerLog{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	l.refused(&net.TCPAddr{}, errors.New("stranger"))
	for range 3 {
		l.unpinned(errors.New("no memory may be locked"))
	}
	now = now.Add(peerLogEvery)
	l.unpinned(errors.New("no memory may be locked"))
	if got := strings.Count(out.String(), "no memory may be locked"); got != 2 || !strings.Contains(out.String(), "more=2") {
		t.Errorf("%d lines of 4, want 2:\n%s", got, out.String())
	}
}
