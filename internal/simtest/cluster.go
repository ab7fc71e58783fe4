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
	// Takes reports whether the cluster is meant to survive a fault. Other faults are not
	// injected. With a single replica of each region it can survive few.
	Takes(Fault) bool
	// RecoverySteps are the steps of recovery that Hooks receive.
	RecoverySteps() []recovery.Step
	// Start boots machines that are down, and returns when they serve, or errDied if one
	// died meanwhile. It is called on a routine that belongs to no machine.
	Start(machines []int) error
	// Died is called at the moment at which processes have died; the world has decided what
	// is left of their machines' memory. Died must not wait.
	Died(machines []int)
	// Machine returns the transactions of a machine, nil while it does not serve.
	Machine(i int) *txn.Machine
	// Whole reports whether every region has all of its replicas, so that another machine
	// may fail.
	Whole() bool
	// Primaries returns the configuration that machine i is in, and the regions for which it believes
	// that it is the primary.
	Primaries(i int) (cluster.ID, []region.ID)
	// Lives returns the lives that a serving machine knows of.
	Lives(i int) catalog.Lives
	// Check checks every store, once nothing runs, and returns the faults. reachable yields
	// all pointers in use except the root. It is called on a routine of machine 0.
	Check(reachable iter.Seq[region.Ptr]) ([]farm.Fault, error)
}

// Hooks are the functions that a Cluster calls.
type Hooks struct {
	// Prepare is called with the transactions of a machine at the start of a life, before
	// functions can be shipped to it; Serving is called when it serves.
	Prepare func(machine int, m *txn.Machine)
	Serving func(machine int, m *txn.Machine)
	// Step is called for every step of a transaction, and Recovering for every step of recovery.
	// Both are called at the machine of the step, while that machine lives. Both may kill
	// processes.
	Step       func(machine int, s step.Step)
	Recovering func(machine int, s recovery.Step)
	// Reconfigured, if not nil, is called by the CM of members when all regions of a
	// configuration are active.
	Reconfigured func(machine int, t membership.Timeline)
}
