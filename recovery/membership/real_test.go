package membership

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/rdmatest"
	"github.com/farmsql/farmsql/region"
)

// A plainHost does nothing, and counts.
type plainHost struct {
	active  atomic.Uint32 // the last configuration that was all active
	evicted atomic.Bool
	hang    bool // in Commit, until the context ends
}

func (h *plainHost) Freeze(*cluster.Configuration) {}
func (h *plainHost) Apply(*cluster.Configuration) ([]region.ID, error) {
	return nil, nil
}

func (h *plainHost) Commit(ctx context.Context, _ *cluster.Configuration) error {
	for h.hang && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

func (h *plainHost) Settle(context.Context, *cluster.Configuration) error { return nil }

func (h *plainHost) Active(c *cluster.Configuration) { h.active.Store(uint32(c.ID)) }
func (h *plainHost) Evicted()                        { h.evicted.Store(true) }
func (h *plainHost) Restart()                        {}
func (h *plainHost) Holds() ([]region.ID, error)     { return nil, nil }
func (h *plainHost) Committed() (cluster.ID, bool)   { return 0, false }
func (h *plainHost) Prepare(cluster.Placement) error { return nil }
func (h *plainHost) Announce(cluster.Placement)      {}

// A realMachine is one with goroutines and timers.
type realMachine struct {
	*Machine
	host   *plainHost
	close  func()
	nic    rdma.NIC
	keeper lease.Keeper
}

func startReal(t *testing.T, n rdmatest.Fabric, store string, id rdma.MachineID) *realMachine {
	t.Helper()
	nic, err := n.Join(id)
	if err != nil {
		t.Fatal(err)
	}
	incarnation := rand.Uint64() | 1
	r := &realMachine{host: new(plainHost), nic: nic}
	e := call.New(nic, clock.System{}, incarnation)
	s, err := cluster.Open("file://" + store)
	if err != nil {
		t.Fatal(err)
	}
	var m atomic.Pointer[Machine]
	r.keeper = lease.NewCalls(e, leaseKind, lease.Config{Length: 2 * time.Second, Clock: clock.System{}, Expired: func(x rdma.MachineID) {
		if m := m.Load(); m != nil {
			m.Suspect(x)
		}
	}})
	r.Machine, err = New(Config{
		Self:  cluster.Member{Machine: id, FailureDomain: int(id), Incarnation: incarnation},
		First: &cluster.Configuration{Replicas: 2, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16},
		Store: s, NIC: nic, Worker: 1, Endpoint: e, Keeper: r.keeper, Clock: clock.System{}, Host: r.host,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Store(r.Machine)
	r.close = func() {
		_ = r.keeper.Close()
		e.Close()
		r.Close()
		_ = nic.Close()
	}
	return r
}

// With goroutines, timers and a file: machines come in, one dies, the rest goes on,
// and nothing runs any more when all are closed. Leases are kept, and probes sent, over the network.
func TestRealMachines(t *testing.T) {
	ways := []testnet.Way{testnet.LocalAsync, testnet.TCP, testnet.BadTCP}
	if testnet.HasCard(t) {
		ways = append(ways, testnet.Verbs)
	}
	for _, way := range ways {
		t.Run(string(way), func(t *testing.T) { realMachines(t, testnet.New(t, way)) })
		goleak.VerifyNone(t)
	}
}

func realMachines(t *testing.T, network rdmatest.Fabric) {
	store := filepath.Join(t.TempDir(), "configuration")
	var machines []*realMachine
	eventually := func(what string, f func() bool) {
		t.Helper()
		for begin := time.Now(); !f(); time.Sleep(time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}
	for id := range rdma.MachineID(3) {
		r := startReal(t, network, store, id)
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		machines = append(machines, r)
	}
	eventually("all regions are active", func() bool { return machines[2].host.active.Load() == 3 })
	p, err := machines[1].Allocate(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	machines[2].close()
	if err := machines[2].Err(); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed machine: %v", err)
	}
	machines[0].host.hang = true
	eventually("the others have noticed", func() bool {
		c := machines[1].Configuration()
		now, _ := c.Placement(p.Region)
		return len(c.Machines) == 2 && len(now.Replicas()) == 2
	})
	// Close ends a Commit that is under way.
	machines[0].close()
	machines[1].close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late := startReal(t, network, store, 5)
	if err := late.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	late.close()
}
