package farmsql

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A meeting is a cluster all of whose machines are in this process, for a while:
// for a check, while their own processes do not run. They do what they do when
// all have been started again, with their own memory and configuration; only what
// they reach each other by is not that of their processes.
type meeting struct {
	store   cluster.Store
	ctx     context.Context // of OpenStopped: bounds the wait for backups to be filled
	leases  lease.Together
	members []*farm.Member
	folders []*nvram.Folder
	nics    []rdma.NIC
	saves   []string // of the machines; empty until all are open
}

var _ instance = (*meeting)(nil)

// OpenStopped opens a cluster of which no process runs, all of its machines in
// this process: see Config.Cluster, and DB.Check, which is what it is for. cfg
// describes no single machine. It fails if a machine of the configuration has no
// folder in o.Data, or one that cannot be used: the others would go on without it; and
// with ErrAway if regions wait for a machine that is in no configuration.
func OpenStopped(ctx context.Context, o Offline, cfg Config) (*DB, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	cfg.Trust, cfg.Folder = o.Trust, o.Data[0]
	m := &meeting{ctx: ctx}
	if err := m.open(ctx, o, cfg); err != nil {
		return nil, ours(errors.Join(err, m.Close()))
	}
	db := &DB{cfg: cfg, instance: m, operator: newOperator(cfg)}
	db.operator.whole = m.Status
	if err := db.start(ctx); err != nil {
		return nil, ours(errors.Join(tornBy(err), db.Close()))
	}
	return db, nil
}

func (m *meeting) open(ctx context.Context, o Offline, cfg Config) (err error) {
	if m.store, err = o.openStore(); err != nil {
		return err
	}
	h, err := o.hold(m.store)
	if err != nil {
		return err
	}
	c := h.configuration
	if err := errors.Join(h.checkRegions(ctx), h.release()); err != nil {
		return err
	}
	network := local.NewNetwork(local.Options{})
	for i, id := range c.Machines {
		f, err := nvram.OpenFolder(h.folders[i].Path(), cfg.memoryOf(int(id)))
		if err != nil {
			return fmt.Errorf("machine %d: %w", id, err)
		}
		m.folders = append(m.folders, f)
		nic, err := network.Join(id)
		if err != nil {
			return err
		}
		m.nics = append(m.nics, nic)
	}
	if err := m.openMembers(ctx, c, cfg); err != nil {
		return err
	}
	if c, err = farm.AwaitWhole(ctx, m.members); err != nil {
		return err
	}
	if err := farm.Unowned(c, m.members); err != nil {
		return err
	}
	for _, id := range c.Machines {
		m.saves = append(m.saves, cfg.savesOf(int(id)))
	}
	return nil
}

// checkRegions looks whether every replica is a region, and whole, before anything is
// done: a machine that finds a broken one leaves the others alone.
func (h *heldInstance) checkRegions(ctx context.Context) error {
	c := h.configuration
	var errs []error
	for i, id := range c.Machines {
		needed := func(r region.ID) bool {
			p, ok := c.Placement(r)
			return ok && p.Has(id) && !slices.Contains(p.Filling, id)
		}
		if err := farm.InspectFolder(ctx, h.folders[i], needed); err != nil {
			errs = append(errs, fmt.Errorf("machine %d: %w", id, err))
		}
	}
	for _, p := range c.Regions {
		for i, id := range c.Machines {
			if !p.Has(id) || slices.Contains(p.Filling, id) {
				continue
			}
			if err := h.checkRegion(h.folders[i], p.Region); err != nil {
				errs = append(errs, fmt.Errorf("machine %d: region %d: %w", id, p.Region, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkRegion looks whether a replica is there; what it is has been looked at.
func (h *heldInstance) checkRegion(f *nvram.Folder, id region.ID) error {
	name := farm.RegionName(id)
	names, err := f.Names()
	if err == nil && !slices.Contains(names, name) {
		err = fmt.Errorf("%w: there is no %s in %s", nvram.ErrGone, name, f.Path())
	}
	return err
}

// openMembers begins a life of every machine.
func (m *meeting) openMembers(ctx context.Context, c *cluster.Configuration, cfg Config) (err error) {
	var cfgs []farm.MemberConfig
	for i, id := range c.Machines {
		self, _ := c.Member(id)
		self.Incarnation = call.AnyLife
		cfgs = append(cfgs, farm.MemberConfig{
			Self: self, Settings: cfg.farm(), Memory: m.folders[i], Store: m.store, NIC: m.nics[i],
			Events: recovery.Events{Failed: func(what string, err error) {
				cfg.Logger.Debug("to be tried again", "machine", id, "what", what, "error", err)
			}},
		})
	}
	m.members, err = farm.OpenMembers(ctx, &m.leases, cfgs)
	return err
}

// Machine implements instance.
func (m *meeting) Machine(i int) *txn.Machine { return m.members[i].Transactions() }

// Status returns how the instance is.
func (m *meeting) Status() farm.Status { return m.members[0].Status() }

// Machines implements instance.
func (m *meeting) Machines() int { return len(m.members) }

// Root implements instance.
func (m *meeting) Root() region.Ptr { return m.members[0].Root() }

// Check implements instance, once all that was under way has been recovered.
func (m *meeting) Check(reachable iter.Seq[region.Ptr]) ([]farm.Fault, error) {
	c, err := farm.AwaitWhole(m.ctx, m.members)
	if err != nil {
		return nil, err
	}
	return farm.CheckMembers(c, m.members, reachable)
}

// Doubt implements instance.
func (m *meeting) Doubt() error {
	for _, f := range m.folders {
		if err := f.Doubt(); err != nil {
			return err
		}
	}
	return nil
}

// Believe implements instance.
func (m *meeting) Believe() error {
	var errs []error
	for _, f := range m.folders {
		errs = append(errs, f.Believe())
	}
	return errors.Join(errs...)
}

// Close implements instance.
func (m *meeting) Close() error {
	var errs []error
	m.leases.End()
	for _, x := range m.members {
		errs = append(errs, x.Close())
	}
	for _, nic := range m.nics {
		errs = append(errs, nic.Close())
	}
	for i, f := range m.folders {
		if len(m.saves) > 0 && m.saves[i] != "" && f.Doubt() == nil { // what they have saved is older now
			errs = append(errs, f.Save(m.saves[i]))
		}
		errs = append(errs, f.Close())
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	return errors.Join(errs...)
}
