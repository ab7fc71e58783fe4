package farm

import (
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Host is what the machines of an instance run on, such as the simulator's
// machines, each with a clock and a network card of its own.
type Host interface {
	Clock(machine int) clock.Clock
	Join(machine int) (rdma.NIC, error)
	// Step is told of the steps of transactions, Recovering of those of recovery;
	// see txn.Events and recovery.Options.
	Step(machine int, s txn.Step)
	Recovering()
}

// process is the host where none is given: this process.
type process struct {
	clock   clock.Clock
	network *local.Network
}

func (p *process) Clock(int) clock.Clock { return p.clock }
func (p *process) Step(int, txn.Step)    {}
func (p *process) Recovering()           {}

func (p *process) Join(machine int) (rdma.NIC, error) {
	nic, err := p.network.Join(rdma.MachineID(machine))
	if err != nil {
		return nil, err // and not a nil *local.NIC
	}
	return nic, nil
}

// stepsOf returns who is told of a machine's steps, nil if nobody.
func (c *Config) stepsOf(machine int) func(txn.Step) {
	if c.Host == nil {
		return c.onStep
	}
	return func(s txn.Step) { c.Host.Step(machine, s) }
}

// Primaries returns the configuration in which machine i is, and the regions of
// which it believes to be the primary.
func (c *Cluster) Primaries(i int) (cluster.ID, []region.ID) {
	m := c.machines[i]
	var ids []region.ID
	for id := range m.regions { // any order: sorted below
		if m.txn.IsPrimary(region.MakeAddr(id, 0)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return cluster.ID(m.txn.Configuration()), ids
}
