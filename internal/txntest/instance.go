// Package txntest runs several machines in one process, over rdma/local or another network (Config.NewNetwork), and
// without membership, for tests of transactions and of the layers above them.
//
// There is one configuration, which changes only by new regions: no leases, no configuration
// manager, no recovery. So a machine that is lost stays lost, with its running transactions.
// Nothing waits or sleeps by itself, so that a test's clock moves only with the
// transactions. Freed memory keeps its size class, because no epoch ends; closing the
// instance frees it.
//
//	x, err := txntest.Open(txntest.Config{Machines: 3, Replicas: 2})
//	err = x.Machine(0).Run(ctx, func(t *txn.Tx) error { ... })
//	err = x.Check(slices.Values(ptrs))
//	err = x.Close()
package txntest

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/txn"
)

// A Config has the numbers and sizes of an Instance. The zero value of each field stands for its default.
type Config struct {
	// Machines is the number of machines; 1 by default.
	Machines int
	// Replicas is the number of machines that keep each region; 1 by default.
	Replicas int
	// Workers is the number of workers of each machine; 2 by default.
	Workers int
	// RegionBytes is the size of a region, a power of two; 1 MB by default.
	RegionBytes int64
	// LogBytes is the size of each transaction log; 256 KB by default.
	LogBytes int64
	// MessageBytes is the size of each message queue; 64 KB by default.
	MessageBytes int64
	// Clock is the clock of all machines; the system's by default.
	Clock clock.Clock
	// Network has the options of the NICs on a network of local copies.
	Network local.Options
	// NewNetwork, if not nil, returns the network of an instance, in place of one of local copies.
	NewNetwork func() Network
	// Wrap, if not nil, wraps each machine's NIC.
	Wrap func(rdma.NIC) rdma.NIC
}

func (c Config) withDefaults() Config {
	c.Machines = cmp.Or(c.Machines, 1)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Workers = cmp.Or(c.Workers, 2)
	c.RegionBytes = cmp.Or(c.RegionBytes, 1<<20)
	c.LogBytes = cmp.Or(c.LogBytes, 256<<10)
	c.MessageBytes = cmp.Or(c.MessageBytes, 64<<10)
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.NewNetwork == nil {
		c.NewNetwork = func() Network { return copies{local.NewNetwork(c.Network)} }
	}
	return c
}

// A Network is a network that machines join.
type Network interface {
	Join(m rdma.MachineID) (rdma.NIC, error)
}

// copies narrows the result of Join.
type copies struct{ *local.Network }

func (c copies) Join(m rdma.MachineID) (rdma.NIC, error) { return c.Network.Join(m) }

// An Instance is a set of machines that run transactions. It is safe for concurrent use.
type Instance struct {
	cfg      Config
	network  Network
	machines []*machine

	mu struct {
		sync.Mutex
		configuration *cluster.Configuration
	}
}

// patience is how long Check and Close wait for the last truncations.
const patience = 10 * time.Second

// Open starts the machines of an instance and connects them. There is no region yet.
func Open(cfg Config) (*Instance, error) {
	cfg = cfg.withDefaults()
	x := &Instance{cfg: cfg, network: cfg.NewNetwork()}
	x.mu.configuration = &cluster.Configuration{Cluster: 1, ID: 1, Revision: 1, Replicas: cfg.Replicas, NextRegion: 1}
	for i := range cfg.Machines {
		x.mu.configuration.AddMember(cluster.Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: uint64(1 + i)})
	}
	if err := x.start(); err != nil {
		return nil, errors.Join(err, x.stop(0))
	}
	return x, nil
}

func (x *Instance) start() error {
	for i := range x.cfg.Machines {
		m := newMachine(rdma.MachineID(i), x.cfg)
		x.machines = append(x.machines, m)
		if err := m.start(x); err != nil {
			return err
		}
	}
	return x.connect()
}

// connect connects every machine to every other. It is called only after all of them listen.
func (x *Instance) connect() error {
	for _, m := range x.machines {
		for _, peer := range x.machines {
			g, err := m.txn.Listen(peer.id)
			if err != nil {
				return err
			}
			m.greetings = append(m.greetings, g)
		}
	}
	for _, m := range x.machines {
		for _, peer := range x.machines {
			if m == peer {
				continue
			}
			if err := m.txn.Connect(peer.id, peer.greetings[m.id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Machine returns the transactions of machine i, from 0.
func (x *Instance) Machine(i int) *txn.Machine { return x.machines[i].txn }

// RefuseAnnexes makes machine i refuse annexes, as if it had no room, until undo is called.
func (x *Instance) RefuseAnnexes(i int) (undo func()) {
	x.machines[i].isFull.Store(true)
	return func() { x.machines[i].isFull.Store(false) }
}

// Machines returns the number of machines.
func (x *Instance) Machines() int { return len(x.machines) }

// Configuration returns a copy of the configuration.
func (x *Instance) Configuration() *cluster.Configuration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.configuration.Clone()
}

// Close ends the instance after all replicas have applied all commits. No transaction
// may be running. If a machine is lost, Close returns an error, but still ends the
// instance.
func (x *Instance) Close() error { return errors.Join(x.quiesce(), x.stop(patience)) }

// quiesce waits until everything is truncated.
func (x *Instance) quiesce() error {
	var errs []error
	for _, m := range x.machines {
		errs = append(errs, m.txn.Quiesce(patience))
	}
	return errors.Join(errs...)
}

// stop stops what Open started, in reverse order: the users of NICs before the NICs.
func (x *Instance) stop(patience time.Duration) error {
	var errs []error
	for _, m := range x.machines {
		if m.txn != nil {
			errs = append(errs, m.txn.Close(patience))
		}
	}
	for _, m := range x.machines {
		if m.nic != nil {
			errs = append(errs, m.nic.Close())
		}
	}
	return errors.Join(errs...)
}
