//go:build verbs && linux && cgo

package verbs

import (
	"os"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/rdmatest"
)

// realFabric returns a fabric of the RDMA devices of this computer; without one the test is skipped.
func realFabric(t testing.TB) *fabric {
	t.Helper()
	found, err := os.ReadDir("/sys/class/infiniband")
	var names []string
	for _, d := range found {
		names = append(names, d.Name())
	}
	if len(names) == 0 {
		t.Skipf("no RDMA device (%v): go run ./test/vm ./rdma/verbs", err)
	}
	return &fabric{devices: names, join: Join, at: map[rdma.MachineID]string{}, up: map[rdma.MachineID]*NIC{}}
}

func TestConformance(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric { return realFabric(t) })
}

func TestConformanceTLS(t *testing.T) {
	secured := certificates(t)
	rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric {
		f := realFabric(t)
		f.tls = secured
		return f
	})
}

// Devices of the kernel are known by what they say of themselves.
func TestSoftRoCE(t *testing.T) {
	for _, name := range realFabric(t).devices {
		if isSoft := isSoftRoCE(name); isSoft != strings.HasPrefix(name, "rxe") {
			t.Errorf("%s is soft-RoCE: %v", name, isSoft)
		}
	}
}

// A card finds a peer without receives, and breaks the connection after a bound.
func TestRingsRunOutOnACard(t *testing.T) { ringsRunOut(t, realFabric(t)) }

// Long operations are cut into requests, and wait for room.
func TestLongOperationsOnACard(t *testing.T) { longOperations(t, realFabric(t), 2<<20) }

// TestDiscardOnACard: a card writes to the memory that the machine sees, also after that was given back.
func TestDiscardOnACard(t *testing.T) { discardOfWhatIsPinned(t, realFabric(t)) }

// What is not there is refused, with what there is.
func TestDevicesThatAreNotThere(t *testing.T) {
	f := realFabric(t)
	for name, c := range map[string]struct {
		change func(cfg *Config)
		want   string
	}{
		"device": {func(cfg *Config) { cfg.Device = "mlx5_9" }, "there is no RDMA device mlx5_9, only [" + f.devices[0]},
		"port":   {func(cfg *Config) { cfg.Port = 2 }, "port 2: the device has 1 ports"},
		"GID":    {func(cfg *Config) { cfg.GIDIndex = 200 }, "there is no GID of index 200"},
	} {
		cfg := f.config(1)
		c.change(&cfg)
		if _, err := Join(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	cfg := f.config(1)
	cfg.GIDIndex, cfg.TrafficClass, cfg.MTU, cfg.Port = 1, 96, 1024, 1
	nic, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if nic.limits.self.mtu != mtuCode(1024) {
		t.Errorf("the MTU is of code %d", nic.limits.self.mtu)
	}
	if err := nic.Close(); err != nil {
		t.Error(err)
	}
}
