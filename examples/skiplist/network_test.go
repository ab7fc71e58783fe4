package skiplist

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/shm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// overShm names the provider for processes of one host, which package testnet does not have.
const overShm testnet.Way = "shm"

// everywhere runs a test over each provider.
func everywhere(t *testing.T, fn func(t *testing.T, way testnet.Way)) {
	t.Helper()
	for _, way := range []testnet.Way{testnet.Local, testnet.LocalAsync, overShm, testnet.TCP, testnet.TLS, testnet.Verbs} {
		t.Run(string(way), func(t *testing.T) {
			if way == testnet.Verbs && !testnet.HasCard(t) {
				t.Skip("no RDMA device")
			}
			fn(t, way)
		})
	}
}

// A cluster is machines with a handle each on one list, whose nodes are at machine 0.
type cluster struct {
	*farm.Local
	lists []*List
}

// open starts machines that reach each other over a provider.
func open(t testing.TB, way testnet.Way, machines, replicas int) *cluster {
	t.Helper()
	join := joiner(t, way)
	var nics []rdma.NIC
	local, err := farm.Open(farm.Config{
		Folder: t.TempDir(), Machines: machines, Replicas: replicas, RegionBytes: 8 << 20, LogBytes: 1 << 20, MessageBytes: 64 << 10,
		Each: func(m *farm.MemberConfig) {
			nic, err := join(m.Self.Machine)
			if errors.Is(err, nvram.ErrPrivate) {
				t.Skip("race builds keep memory on the heap, and nobody shares it")
			}
			if err != nil {
				t.Fatal(err)
			}
			nics, m.NIC = append(nics, nic), nic
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Local: local}
	t.Cleanup(func() {
		_ = c.Close() // of a machine that was killed it says so
		for _, nic := range nics {
			_ = nic.Close()
		}
	})
	for i := range machines {
		Serve(c.Machine(i))
	}
	c.use(t, lookup.Measured)
	return c
}

func joiner(t testing.TB, way testnet.Way) func(rdma.MachineID) (rdma.NIC, error) {
	if way != overShm {
		return testnet.New(t, way).Join
	}
	path := t.TempDir()
	return func(m rdma.MachineID) (rdma.NIC, error) { return shm.Join(path, m) }
}

// use opens a handle on each machine, whose lookups go the way w. It creates the list if there is none.
func (c *cluster) use(t testing.TB, w lookup.Way) {
	t.Helper()
	var head region.Ptr
	if len(c.lists) > 0 {
		head = c.lists[0].head
	} else {
		run(t, c.Machine(0), func(tx *txn.Tx) (err error) {
			head, err = Create(tx, 0)
			return err
		})
	}
	c.lists = nil
	for i := range c.Machines() {
		c.lists = append(c.lists, Open(c.Machine(i), head, w))
	}
}

// run runs fn in a transaction that must commit.
func run(t testing.TB, m *txn.Machine, fn func(*txn.Tx) error) {
	t.Helper()
	if err := m.Run(ctx, fn); err != nil {
		t.Fatal(err)
	}
}

// check checks that all memory in use is the list's and the instance's own.
func (c *cluster) check(t testing.TB, m int) {
	t.Helper()
	var nodes []region.Ptr
	run(t, c.Machine(m), func(tx *txn.Tx) (err error) {
		nodes, err = c.lists[m].Nodes(tx)
		return err
	})
	faults, err := c.Check(ctx, slices.Values(append(nodes, c.Root())))
	if err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}
