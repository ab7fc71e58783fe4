package testnet

import (
	"cmp"
	"os"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"github.com/farmsql/farmsql/rdma/verbs"
)

// HasCard reports whether suites run over verbs as well: only if this computer has an RDMA device,
// as the virtual machine of test/vm has.
func HasCard(t testing.TB) bool {
	t.Helper()
	devices, _ := os.ReadDir("/sys/class/infiniband")
	if len(devices) == 0 {
		t.Log("not over verbs, for want of an RDMA device: go run ./test/vm runs a package's tests with one")
	}
	return len(devices) > 0
}

// newVerbs returns a network of machines that share the RDMA devices of this computer; without one, the test is skipped.
func newVerbs(t testing.TB) rdmatest.Fabric {
	t.Helper()
	devices, err := os.ReadDir("/sys/class/infiniband")
	if len(devices) == 0 {
		t.Skipf("no RDMA device here (%v): go run ./test/vm PACKAGE -test.run verbs", err)
	}
	n := &cards{at: map[rdma.MachineID]string{}, up: map[rdma.MachineID]*verbs.NIC{}, cut: map[[2]rdma.MachineID]bool{}}
	for _, d := range devices {
		n.devices = append(n.devices, d.Name())
	}
	return n
}

// cards is a network of machines with RDMA cards.
type cards struct {
	devices []string
	mu      sync.Mutex
	at      map[rdma.MachineID]string // where the others reach each machine
	up      map[rdma.MachineID]*verbs.NIC
	cut     map[[2]rdma.MachineID]bool // severed links, which stay severed in later lives of both machines
}

// Join implements rdmatest.Fabric. A machine that comes back has the address that it had.
func (n *cards) Join(m rdma.MachineID) (rdma.NIC, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	nic, err := verbs.Join(verbs.Config{
		Machine: m, Cluster: [16]byte{7}, Listen: cmp.Or(n.at[m], "127.0.0.1:0"), Resolve: n.resolve,
		Device: n.devices[int(m)%len(n.devices)], GIDIndex: verbs.AnyGID,
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
	return nic, nil
}

func (n *cards) resolve(m rdma.MachineID) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.at[m]
	return a, ok
}

// Cut implements rdmatest.Fabric.
func (n *cards) Cut(a, b rdma.MachineID) {
	n.mu.Lock()
	n.cut[cable(a, b)] = true
	x, y := n.up[a], n.up[b]
	n.mu.Unlock()
	if x != nil {
		x.Cut(b)
	}
	if y != nil {
		y.Cut(a)
	}
}

// Mend implements rdmatest.Fabric.
func (n *cards) Mend(a, b rdma.MachineID) {
	n.mu.Lock()
	delete(n.cut, cable(a, b))
	x, y := n.up[a], n.up[b]
	n.mu.Unlock()
	if x != nil {
		x.Mend(b)
	}
	if y != nil {
		y.Mend(a)
	}
}
