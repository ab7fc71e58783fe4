//go:build !race

package shm

import (
	"os"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"go.uber.org/goleak"
)

// fabric is a folder, with its machines all in this process.
type fabric struct {
	t    *testing.T
	path string
	nics map[rdma.MachineID]*NIC
}

func newFabric(t *testing.T) *fabric {
	return &fabric{t, folderOf(t), map[rdma.MachineID]*NIC{}}
}

// folderOf returns a new folder on a tmpfs, if the host has the usual one.
func folderOf(t testing.TB) string {
	path, err := os.MkdirTemp("/dev/shm", "farmsql-shm-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

func (f *fabric) Join(m rdma.MachineID) (rdma.NIC, error) {
	nic, err := Join(f.path, m)
	if err != nil {
		return nil, err
	}
	f.nics[m] = nic
	return nic, nil
}

func (f *fabric) Cut(a, b rdma.MachineID) {
	f.nics[a].Cut(b)
	f.nics[b].Cut(a)
}

func (f *fabric) Mend(a, b rdma.MachineID) {
	f.nics[a].Mend(b)
	f.nics[b].Mend(a)
}

func TestConformance(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric { return newFabric(t) })
}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
