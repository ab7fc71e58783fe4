// Package testnet has the networks over which the protocols' test suites run. A suite changes its
// network by one word:
//
//	network := testnet.New(t, testnet.TCP)
//	nic, err := network.Join(0)
//
// All machines are in the test's process. Machines of TCP and BadTCP talk over the loopback
// interface, not across network namespaces: a namespace belongs to a thread, so all goroutines of a
// machine would have to stay on such threads. The tests of package test do cross namespaces, with a
// process for each machine.
package testnet

import (
	"cmp"
	"crypto/tls"
	"os"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/internal/testcert"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"github.com/farmsql/farmsql/rdma/tcp"
)

// A Way is how machines reach each other.
type Way string

const (
	Local      Way = "local"       // memory copies, done when posted
	LocalAsync Way = "local,async" // memory copies, done later
	TCP        Way = "tcp"
	TLS        Way = "tcp,TLS"
	// BadTCP and BadTLS go through relays, which pass bytes on late and in pieces, and datagrams late, out of
	// order, twice or not at all. With TLS and the race detector, a busy computer may take longer for the
	// connections of a cluster than package tcp waits for one.
	BadTCP Way = "tcp,bad"
	BadTLS Way = "tcp,TLS,bad"
	// Verbs uses the RDMA devices of this computer: soft-RoCE in the virtual machine of test/vm.
	Verbs Way = "verbs"
)

// RunsBad reports whether suites that take long over a bad network run there in full: in the
// nightly mode.
func RunsBad(t testing.TB) bool {
	t.Helper()
	isNight := os.Getenv("FARMSQL_NIGHTLY") != ""
	if !isNight {
		t.Log("all of it over a bad network only in the nightly mode, FARMSQL_NIGHTLY=1: it takes long there")
	}
	return isNight
}

// New returns an empty network, which ends with the test.
func New(t testing.TB, way Way) rdmatest.Fabric {
	t.Helper()
	if way == Local || way == LocalAsync {
		return copies{local.NewNetwork(local.Options{Async: way == LocalAsync})}
	}
	if way == Verbs {
		return newVerbs(t)
	}
	n := &network{t: t, at: map[rdma.MachineID]string{}, up: map[rdma.MachineID]*tcp.NIC{}, cut: map[[2]rdma.MachineID]bool{}}
	if way == TLS || way == BadTLS {
		n.tls = testcert.New(t, t.TempDir()).TLS(t, "127.0.0.1")
	}
	if way == BadTCP || way == BadTLS {
		n.relays = map[rdma.MachineID]*relay{}
	}
	return n
}

// copies narrows the result of Join.
type copies struct{ *local.Network }

func (c copies) Join(m rdma.MachineID) (rdma.NIC, error) {
	nic, err := c.Network.Join(m)
	if err != nil {
		return nil, err
	}
	return nic, nil
}

// A network is machines that talk over the loopback interface.
type network struct {
	t      testing.TB
	tls    *tls.Config
	mu     sync.Mutex
	at     map[rdma.MachineID]string // where the others reach each machine
	up     map[rdma.MachineID]*tcp.NIC
	cut    map[[2]rdma.MachineID]bool // severed links, which stay severed in later lives of both machines
	relays map[rdma.MachineID]*relay  // nil if there are none
}

// Join implements rdmatest.Fabric. A machine that comes back has the address that it had.
func (n *network) Join(m rdma.MachineID) (rdma.NIC, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	cfg := tcp.Config{Machine: m, Cluster: [16]byte{7}, Listen: cmp.Or(n.at[m], "127.0.0.1:0"), Resolve: n.resolve, TLS: n.tls}
	r := n.relayLocked(m)
	if r != nil {
		cfg.Listen, cfg.Advertise = cmp.Or(r.target(), "127.0.0.1:0"), r.tcp.Addr().String()
	}
	var nic *tcp.NIC
	err := tries(cfg.Listen, func() (err error) {
		nic, err = tcp.Join(cfg)
		return err
	})
	if err != nil {
		return nil, err
	}
	for cable := range n.cut {
		switch m {
		case cable[0]:
			nic.Cut(cable[1])
		case cable[1]:
			nic.Cut(cable[0])
		}
	}
	n.at[m], n.up[m] = nic.Address(), nic
	if r != nil {
		r.aim(nic.Address())
		n.at[m] = cfg.Advertise
	}
	return nic, nil
}

// relayLocked returns the relay of a machine, or nil if the network has no relays. The relay stays
// when the machine comes back.
func (n *network) relayLocked(m rdma.MachineID) *relay {
	if n.relays == nil {
		return nil
	}
	if n.relays[m] == nil {
		n.relays[m] = newRelay(n.t, "127.0.0.1:0")
	}
	return n.relays[m]
}

func (n *network) resolve(m rdma.MachineID) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.at[m]
	return a, ok
}

// Cut implements rdmatest.Fabric.
func (n *network) Cut(a, b rdma.MachineID) {
	n.mu.Lock()
	n.cut[cable(a, b)] = true
	n.mu.Unlock()
	n.both(a, b, (*tcp.NIC).Cut)
}

// Mend implements rdmatest.Fabric.
func (n *network) Mend(a, b rdma.MachineID) {
	n.mu.Lock()
	delete(n.cut, cable(a, b))
	n.mu.Unlock()
	n.both(a, b, (*tcp.NIC).Mend)
}

// cable returns the key in cut for the link between two machines.
func cable(a, b rdma.MachineID) [2]rdma.MachineID { return [2]rdma.MachineID{min(a, b), max(a, b)} }

// both calls do for each of two machines that is up, with the other one.
func (n *network) both(a, b rdma.MachineID, do func(nic *tcp.NIC, other rdma.MachineID)) {
	n.mu.Lock()
	x, y := n.up[a], n.up[b]
	n.mu.Unlock()
	if x != nil {
		do(x, b)
	}
	if y != nil {
		do(y, a)
	}
}
