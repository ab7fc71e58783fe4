// Package farm puts the machines of an instance together: memory, NIC,
// allocator, transactions and recovery, opened and closed as one.
//
// A Member is one machine, which can fail alone: it reaches the others through
// its NIC, and the configuration through a store. A Cluster is all of an instance.
//
// All machines of a Cluster live in this process and reach each other through
// rdma/local. Everything between them goes the way it would go between hosts:
// one-sided reads and writes, logs and message queues.
//
// Opening an instance that has existed before is the recovery from a failure of
// all its machines, whether they were closed or killed: the last configuration
// is read, its regions and logs are mapped, package recovery finishes what the
// logs hold, the free lists are rebuilt, and a new configuration begins.
package farm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Cluster is an instance all of whose machines run in this process. It is
// safe for concurrent use.
type Cluster struct {
	cfg      Config
	store    cluster.Store
	machines []*machine
	root     region.Ptr
	recovery recovery.Report

	mu struct {
		sync.Mutex
		configuration *cluster.Configuration
	}
	epochs epochs
}

// closePatience is how long Close waits for the last truncations.
const closePatience = 10 * time.Second

// Open opens the instance that cfg describes, or makes it.
func Open(cfg Config) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg.withDefaults()}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.stopMachines(0), c.closeMemory())
	}
	return c, nil
}

func (c *Cluster) open() error {
	if err := c.openMemory(); err != nil {
		return err
	}
	if err := c.openConfiguration(); err != nil {
		return err
	}
	if err := c.recover(); err != nil {
		return err
	}
	if err := c.start(); err != nil {
		return err
	}
	return c.openRoot()
}

// openMemory opens each machine's memory.
func (c *Cluster) openMemory() error {
	if c.cfg.Folder == "" {
		c.store = &c.cfg.Volatile.store
	} else {
		c.store = cluster.NewFileStore(configurationPath(c.cfg.Folder))
	}
	// Before anything is made that an instance with other settings has not.
	if last, err := c.store.Load(); err != nil {
		return err
	} else if last != nil {
		if err := c.adopt(last); err != nil {
			return err
		}
	}
	for i := range c.cfg.Machines {
		m := &machine{id: rdma.MachineID(i), regions: make(map[region.ID]*region.Region)}
		if c.cfg.Folder == "" {
			m.memory = c.cfg.Volatile.shelf(i)
		} else {
			f, err := c.openFolder(i)
			if err != nil {
				return err
			}
			m.memory = f
		}
		c.machines = append(c.machines, m)
	}
	return nil
}

// openConfiguration moves on from the last configuration, or makes the first.
func (c *Cluster) openConfiguration() error {
	if err := c.restoreConfiguration(); err != nil {
		return err
	}
	last, err := c.store.Load()
	if err != nil {
		return err
	}
	var next *cluster.Configuration
	if last == nil {
		last = &cluster.Configuration{}
		next = &cluster.Configuration{Cluster: c.cfg.Clock.Uint64(), ID: 1, Revision: 1, Replicas: c.cfg.Replicas, NextRegion: 1}
		next.RegionBytes, next.LogBytes, next.Workers = c.cfg.RegionBytes, c.cfg.LogBytes, c.cfg.Workers
		for i := range c.cfg.Machines {
			next.AddMember(cluster.Member{Machine: rdma.MachineID(i), FailureDomain: i, Incarnation: c.cfg.Clock.Uint64()})
		}
	} else {
		if err := c.adopt(last); err != nil {
			return err
		}
		next = last.Succeed()
		for i := range next.Incarnation {
			next.Incarnation[i] = c.cfg.Clock.Uint64()
		}
	}
	if err := c.store.CompareAndSwap(last.Revision, next); err != nil {
		return err
	}
	c.mu.configuration = next
	return nil
}

// Stored returns the settings of the instance in a folder that cannot change: the
// numbers of machines, replicas and workers and the sizes of regions and logs.
// It is false if there is no instance in the folder.
func Stored(folder string) (Config, bool, error) {
	last, err := cluster.NewFileStore(configurationPath(folder)).Load()
	if err != nil || last == nil {
		return Config{}, false, err
	}
	return Config{
		Folder: folder, Machines: len(last.Machines), Replicas: last.Replicas, Workers: last.Workers,
		RegionBytes: last.RegionBytes, LogBytes: last.LogBytes,
	}, true, nil
}

func configurationPath(folder string) string { return filepath.Join(folder, "configuration.json") }

// ErrMismatch means that an instance was made with other settings than it is
// opened with.
var ErrMismatch = errors.New("farm: the instance was made with other settings")

// adopt checks the settings that cannot change.
func (c *Cluster) adopt(last *cluster.Configuration) error {
	for _, s := range []struct {
		name     string
		was, now int64
	}{
		{"machines", int64(len(last.Machines)), int64(c.cfg.Machines)},
		{"replicas", int64(last.Replicas), int64(c.cfg.Replicas)},
		{"workers", int64(last.Workers), int64(c.cfg.Workers)},
		{"region size", last.RegionBytes, c.cfg.RegionBytes},
		{"log size", last.LogBytes, c.cfg.LogBytes},
	} {
		if s.was != s.now {
			return fmt.Errorf("%w: %s was %d and is now %d; open it with the former value, or give another folder", ErrMismatch, s.name, s.was, s.now)
		}
	}
	return nil
}

// recover finishes what an earlier life of the instance has left in its logs.
func (c *Cluster) recover() error {
	var remains []recovery.Machine
	for _, m := range c.machines {
		if err := m.openRegions(c.mu.configuration, c.cfg.RegionBytes); err != nil {
			return err
		}
		if err := m.openLogs(c.cfg); err != nil {
			return err
		}
		remains = append(remains, m.remains())
	}
	begin := c.cfg.Clock.Now()
	var err error
	c.recovery, err = recovery.Restart(c.mu.configuration, remains, recovery.Options{Nonce: c.cfg.Clock.Uint64, Step: c.cfg.onRecoveryStep})
	if err != nil {
		return err
	}
	for _, m := range c.machines { // no record names them any more
		if err := dropAnnexes(m.memory, m.annexes); err != nil {
			return fmt.Errorf("farm: machine %d: %w", m.id, err)
		}
		m.annexes = nil
	}
	c.cfg.Logger.Info("recovered", "configuration", c.mu.configuration.ID, "regions", len(c.mu.configuration.Regions),
		"records", c.recovery.Records, "committed", c.recovery.Committed, "aborted", c.recovery.Aborted,
		"unlocked", c.recovery.Unlocked, "took", c.cfg.Clock.Now().Sub(begin))
	return nil
}

// start brings the machines up and connects them.
func (c *Cluster) start() error {
	host := c.cfg.Host
	if host == nil {
		host = &process{c.cfg.Clock, local.NewNetwork(c.cfg.Network)}
	}
	for _, m := range c.machines {
		if err := c.startMachine(m, host); err != nil {
			return err
		}
	}
	if err := c.connect(); err != nil {
		return err
	}
	for _, p := range c.mu.configuration.Regions {
		if err := c.announce(p); err != nil {
			return err
		}
	}
	return c.rebuildAllocators()
}

// connect connects every machine to every other.
func (c *Cluster) connect() error {
	type greeting struct {
		from, to *machine
		g        txn.Greeting
	}
	var greetings []greeting
	for _, m := range c.machines {
		for _, peer := range c.machines {
			g, err := m.txn.Listen(peer.id)
			if err != nil {
				return err
			}
			if m != peer {
				greetings = append(greetings, greeting{m, peer, g})
			}
		}
	}
	for _, g := range greetings {
		if err := g.to.txn.Connect(g.from.id, g.g); err != nil {
			return err
		}
	}
	return nil
}

// rebuildAllocators has each primary find out what is free in its regions.
func (c *Cluster) rebuildAllocators() error {
	for _, m := range c.machines {
		for _, p := range c.mu.configuration.Regions {
			if p.Primary != m.id {
				continue
			}
			if err := m.txn.SendBlocks(c.mu.configuration.ID, p.Region); err != nil {
				return fmt.Errorf("farm: region %d: %w", p.Region, err)
			}
			m.allocator.Add(m.regions[p.Region])
		}
	}
	return nil
}

func (c *Cluster) startMachine(m *machine, host Host) (err error) {
	machineClock := host.Clock(int(m.id))
	if m.nic, err = host.Join(int(m.id)); err != nil {
		return err
	}
	m.allocator = region.NewAllocator(region.AllocatorConfig{
		Workers:  c.cfg.Workers,
		HeldBack: heldBack,
		Clock:    machineClock,
		Replicate: func(id region.ID, off uint64, data []byte, in uint32) error {
			return m.txn.WriteBackups(id, off, data, in)
		},
		Reserve: func(id region.ID, off, n uint64) (uint32, error) { return m.txn.ReserveBackups(id, off, n) },
		Discard: func(id region.ID, off, n uint64) (uint32, error) {
			return m.txn.Discard(context.Background(), id, off, n)
		},
		Emptied:   c.onEmptied,
		Grow:      func(near region.ID) (*region.Region, error) { return c.grow(m, near) },
		Colocated: c.colocated,
	})
	m.txn, err = txn.New(txn.Config{
		ID:      m.id,
		Config:  uint32(c.mu.configuration.ID),
		Workers: c.cfg.Workers,
		NIC:     m.nic,
		Log: func(sender rdma.MachineID, worker int) (*nvram.Memory, error) {
			return m.logs[sender][worker], nil
		},
		Annex:        func(number uint64, bytes int64) (*nvram.Memory, error) { return makeAnnex(m.memory, number, bytes) },
		DropAnnex:    func(number uint64, mem *nvram.Memory) error { return dropAnnex(m.memory, number, mem) },
		LogBytes:     int(c.cfg.LogBytes),
		MessageBytes: int(c.cfg.MessageBytes),
		Allocator:    m.allocator,
		Clock:        machineClock,
		Events: txn.Events{
			Fenced: func(peer rdma.MachineID, err error) {
				c.cfg.Logger.Error("peer fenced", "machine", m.id, "peer", peer, "error", err)
			},
			Step: c.cfg.stepsOf(int(m.id)),
		},
	})
	return err
}

// announce makes a region known to all machines, and its primary allocate in it.
func (c *Cluster) announce(p cluster.Placement) error {
	for _, m := range c.machines {
		r := m.regions[p.Region]
		if r != nil {
			if err := m.nic.Register(txn.RegionKey(p.Region), r.Memory()); err != nil {
				return err
			}
			if _, err := txn.ReceiveBlocks(m.nic, p, r, 0); err != nil {
				return err
			}
		}
		m.txn.AddRegion(p, r)
	}
	return nil
}

// Machine returns the transactions of machine i, from 0.
func (c *Cluster) Machine(i int) *txn.Machine { return c.machines[i].txn }

// Machines returns how many there are.
func (c *Cluster) Machines() int { return len(c.machines) }

// Root returns the instance's root object, made with it: rootBytes of payload,
// from which everything else is found.
func (c *Cluster) Root() region.Ptr { return c.root }

// Recovered says what the recovery at Open has found and done.
func (c *Cluster) Recovered() recovery.Report { return c.recovery }

// Close ends the instance: what has been committed is applied at all replicas.
// No transaction may be running.
func (c *Cluster) Close() error {
	var err error
	for _, m := range c.machines {
		err = errors.Join(err, m.txn.Quiesce(closePatience))
	}
	if err = errors.Join(err, c.stopMachines(closePatience)); err == nil {
		err = c.save()
	}
	return errors.Join(err, c.closeMemory())
}

// stopMachines ends what has been started, in reverse: first who uses memory,
// then what memory is used through.
func (c *Cluster) stopMachines(patience time.Duration) error {
	c.stopReclaiming()
	var err error
	for _, m := range c.machines {
		if m.txn != nil {
			err = errors.Join(err, m.txn.Close(patience))
		}
	}
	for _, m := range c.machines {
		if m.nic != nil {
			err = errors.Join(err, m.nic.Close())
		}
	}
	return err
}

func (c *Cluster) closeMemory() error {
	var err error
	for _, m := range c.machines {
		if m.memory != nil {
			err = errors.Join(err, m.memory.Close())
		}
	}
	return err
}

// rootBytes is the payload of the root object.
const rootBytes = 1008

// openRoot finds the root object, or makes it. Its address goes into the
// configuration before it exists, so that a crash in between leaves none behind
// that nobody knows.
func (c *Cluster) openRoot() error {
	c.root = c.mu.configuration.Root
	m := c.machines[0].txn
	if !c.root.IsNil() {
		payload := make([]byte, c.root.Capacity())
		_, err := m.Read(c.root, payload)
		if !errors.Is(err, region.ErrFreed) {
			return err
		}
	}
	t := m.Begin()
	defer t.Abort()
	p, _, err := t.Alloc(rootBytes, 0)
	if err != nil {
		return err
	}
	c.cfg.Clock.Lock(&c.mu.Mutex)
	next := c.mu.configuration.Revise()
	next.Root = p
	if err = c.store.CompareAndSwap(c.mu.configuration.Revision, next); err == nil {
		c.mu.configuration = next
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.root = p
	return t.Commit(context.Background())
}
