package lease

import (
	"errors"

	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/local"
)

// A variant is a way to keep leases.
type variant struct {
	name   string
	isHere func() bool // whether the variant is in this build and permitted to this user
	// cluster makes a new cluster, and returns the function that starts its machines, one at a time.
	cluster func(id uint64) func(self call.Peer, cfg lease.Config) (lease.Keeper, error)
}

var variants = []variant{
	{"calls", always, callCluster},
	{"locked", always, func(id uint64) func(call.Peer, lease.Config) (lease.Keeper, error) {
		return func(self call.Peer, cfg lease.Config) (lease.Keeper, error) { return lease.NewLocked(id, self, cfg) }
	}},
	{"thread", func() bool { return lease.HaveThread }, func(id uint64) func(call.Peer, lease.Config) (lease.Keeper, error) {
		return func(self call.Peer, cfg lease.Config) (lease.Keeper, error) {
			cfg.NormalPriority = true
			return lease.NewThread(id, self, cfg)
		}
	}},
	{"realtime", lease.MayRealtime, func(id uint64) func(call.Peer, lease.Config) (lease.Keeper, error) {
		return func(self call.Peer, cfg lease.Config) (lease.Keeper, error) { return lease.NewThread(id, self, cfg) }
	}},
}

func always() bool { return true }

// Variants returns the names of the available ways to keep leases:
//
//	calls     goroutines and timers, over package rdma/call
//	locked    a goroutine locked to its thread
//	thread    a thread of C
//	realtime  a thread of C with real-time priority, where that is permitted
func Variants() (names []string) {
	for _, v := range variants {
		if v.isHere() {
			names = append(names, v.name)
		}
	}
	return names
}

// kindLease is the kind of notices by which calls keep leases.
const kindLease = 1

// callCluster makes a cluster whose machines keep leases by calls over rdma/local.
func callCluster(uint64) func(call.Peer, lease.Config) (lease.Keeper, error) {
	network := local.NewNetwork(local.Options{})
	return func(self call.Peer, cfg lease.Config) (lease.Keeper, error) {
		nic, err := network.Join(self.Machine)
		if err != nil {
			return nil, err
		}
		e := call.New(nic, clock.System{}, self.Incarnation)
		closeAll := func() error {
			e.Close()
			return nic.Close()
		}
		return &owner{lease.NewCalls(e, kindLease, cfg), closeAll}, nil
	}
}

// An owner is a keeper that also closes what it uses.
type owner struct {
	lease.Keeper
	close func() error
}

// Close ends the exchange.
func (o *owner) Close() error { return errors.Join(o.Keeper.Close(), o.close()) }
