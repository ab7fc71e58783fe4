package simtest

import (
	"errors"
	"iter"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// whole is a farm.Cluster: its machines are started and fail together, and find
// their memory as it was.
type whole struct {
	world    *sim.World
	config   farm.Config
	hooks    Hooks
	volatile *farm.Volatile
	cluster  *farm.Cluster // nil while it is down
	lives    []uint32      // of the machines, once somebody has asked for them
}

var errDied = errors.New("simtest: a process died")

// NewWhole returns a cluster that is down.
func NewWhole(w *sim.World, cfg farm.Config, h Hooks) Cluster {
	return &whole{world: w, config: cfg, hooks: h, volatile: farm.NewVolatile()}
}

// Takes implements Cluster.
func (c *whole) Takes(f Fault) bool {
	switch f {
	case Spike, Pause, PowerCut, PowerCutAtStep, PowerCutInRecovery:
		return true
	}
	return false
}

// RecoverySteps implements Cluster.
func (c *whole) RecoverySteps() []recovery.Step { return []recovery.Step{recovery.StepRestart} }

// Start implements Cluster.
func (c *whole) Start(machines []int) error {
	h := &wholeHost{whole: c}
	for i := range c.config.Machines {
		h.processes = append(h.processes, c.world.Machine(rdma.MachineID(i)).Boot())
	}
	cfg := c.config
	cfg.Host, cfg.Volatile = h, c.volatile
	var err error
	returned := h.processes[0].Do(func() {
		var opened *farm.Cluster
		if opened, err = farm.Open(cfg); err != nil || h.processes[0].Dead() {
			return
		}
		for _, i := range machines {
			c.hooks.Prepare(i, opened.Machine(i))
		}
		for _, i := range machines {
			c.hooks.Serving(i, opened.Machine(i))
		}
		c.cluster = opened
	})
	if !returned {
		return errDied
	}
	return err
}

// Fell implements Cluster.
func (c *whole) Fell([]int) {
	c.cluster, c.lives = nil, nil
	c.volatile = c.volatile.Clone()
}

// Machine implements Cluster.
func (c *whole) Machine(i int) *txn.Machine {
	if c.cluster == nil {
		return nil
	}
	return c.cluster.Machine(i)
}

// Whole implements Cluster.
func (c *whole) Whole() bool { return c.cluster != nil }

// Primaries implements Cluster.
func (c *whole) Primaries(i int) (cluster.ID, []region.ID) {
	if c.cluster == nil {
		return 0, nil
	}
	return c.cluster.Primaries(i)
}

// Lives implements Cluster.
func (c *whole) Lives(i int) catalog.Lives {
	for len(c.lives) < c.config.Machines {
		c.lives = append(c.lives, c.world.Rand().Uint32())
	}
	return catalog.Together(c.lives, i)
}

// Check implements Cluster.
func (c *whole) Check(reachable iter.Seq[region.Ptr]) ([]farm.Fault, error) {
	return c.cluster.Check(reachable)
}

// wholeHost is one life of the cluster.
type wholeHost struct {
	*whole
	processes []*sim.Process
}

func (h *wholeHost) Clock(machine int) clock.Clock      { return h.processes[machine] }
func (h *wholeHost) Join(machine int) (rdma.NIC, error) { return h.processes[machine].Join() }

// Step implements farm.Host.
func (h *wholeHost) Step(machine int, s txn.Step) {
	if !h.processes[machine].Dead() {
		h.hooks.Step(machine, s)
	}
}

// Recovering implements farm.Host.
func (h *wholeHost) Recovering() {
	if !h.processes[0].Dead() {
		h.hooks.Recovering(0, recovery.StepRestart)
	}
}
