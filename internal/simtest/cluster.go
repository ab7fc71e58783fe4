package simtest

import (
	"iter"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/step"
)

// A Cluster is the instance under test: its machine i runs on machine i of a world, in its
// failure domain.
type Cluster interface {
	// Takes says whether the cluster is meant to live through a fault. Others
	// are not injected. With a single replica of each region there is not much
	// that it can take.
	Takes(Fault) bool
	// RecoverySteps are the steps of recovery that Hooks are told of.
	RecoverySteps() []recovery.Step
	// Start boots machines that are down and returns when they serve; errDied
	// says that one died meanwhile. It is called on a routine that belongs to no
	// machine.
	Start(machines []int) error
	// Died is called at the moment in which processes have died; their machines' memory is
	// what the world has kept of it. Died must not wait.
	Died(machines []int)
	// Machine returns the transactions of a machine, nil while it does not serve.
	Machine(i int) *txn.Machine
	// Whole says that every region has all of its replicas, so that another
	// machine may fail.
	Whole() bool
	// Primaries returns the configuration in which machine i is, and the regions
	// of which it believes to be the primary.
	Primaries(i int) (cluster.ID, []region.ID)
	// Lives returns the lives that a machine which serves knows of.
	Lives(i int) catalog.Lives
	// Check checks every store, once nothing runs, and returns the faults. reachable yields
	// all pointers in use except the root. It is called on a routine of machine 0.
	Check(reachable iter.Seq[region.Ptr]) ([]farm.Fault, error)
}

// Hooks are what a Cluster calls.
type Hooks struct {
	// Prepare is called with the transactions of a machine that begins a life,
	// before anything can be shipped to it; Serving when it serves.
	Prepare func(machine int, m *txn.Machine)
	Serving func(machine int, m *txn.Machine)
	// Step is told of every step of a transaction, Recovering of every step of
	// recovery, at the machine where it happens, while that lives. Processes may
	// be killed in them.
	Step       func(machine int, s step.Step)
	Recovering func(machine int, s recovery.Step)
	// Reconfigured, if not nil, is told by the CM of members that all regions of a
	// configuration are active.
	Reconfigured func(machine int, t membership.Timeline)
}
