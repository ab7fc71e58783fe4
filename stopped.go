package farmsql

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
)

// OpenStopped opens a stopped cluster (see Config.Cluster) with all of its machines in this
// process, for DB.Check. No process of the cluster may be running. The machines restart
// together, with their own memory and configuration; cfg must not have the settings of a single
// machine of a cluster. No replicas move: to look at a cluster must not change where its
// regions are.
//
// OpenStopped fails if a machine of the configuration has no folder in o.Data, or an unusable one,
// since the others would go on without that machine. It fails with ErrAway if regions wait for a
// machine that is not in the configuration.
func OpenStopped(ctx context.Context, o Offline, cfg Config) (*DB, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	cfg.Trust, cfg.Folder = o.Trust, o.Data[0]
	db := &DB{cfg: cfg, instance: newInstance(), operator: newOperator(cfg)}
	if err := db.instance.openStopped(ctx, o, cfg, db.operator); err != nil {
		return nil, ours(errors.Join(err, db.instance.Close()))
	}
	if err := db.start(ctx); err != nil {
		return nil, ours(errors.Join(tornBy(err), db.Close()))
	}
	return db, nil
}

func (in *instance) openStopped(ctx context.Context, o Offline, cfg Config, operator *Operator) error {
	store, err := o.openStore()
	if err != nil {
		return err
	}
	machines, err := openStoppedMemory(ctx, o, cfg, store)
	if err != nil {
		return errors.Join(err, closeStopped(store, machines))
	}
	together := in.localConfig(cfg, operator)
	listen := together.Each
	together.Each = func(m *farm.MemberConfig) {
		m.HoldMoves = true
		listen(m)
	}
	local, err := farm.OpenMachines(ctx, together, store, machines)
	if err != nil {
		return err
	}
	in.adoptLocal(local, operator)
	return local.Unowned(ctx)
}

// openStoppedMemory opens the memory of all machines of the configuration, after checking that every
// region in it is whole.
func openStoppedMemory(ctx context.Context, o Offline, cfg Config, store cluster.Store) (machines []farm.LocalMachine, err error) {
	h, err := o.hold(store)
	if err != nil {
		return nil, err
	}
	c := h.configuration
	if err := errors.Join(h.checkRegions(ctx), h.release()); err != nil {
		return nil, err
	}
	for i, id := range c.Machines {
		f, err := nvram.OpenFolder(h.folders[i].Path(), cfg.memoryOf(int(id)))
		if err != nil {
			return machines, fmt.Errorf("machine %d: %w", id, err)
		}
		self, _ := c.Member(id)
		machines = append(machines, farm.LocalMachine{Self: self, Memory: f, Saves: cfg.savesOf(int(id))})
	}
	return machines, nil
}

func closeStopped(store cluster.Store, machines []farm.LocalMachine) error {
	errs := []error{store.Close()}
	for _, m := range machines {
		errs = append(errs, m.Memory.Close())
	}
	return errors.Join(errs...)
}

// checkRegions checks that every replica is a whole region, before any machine starts: a machine
// that finds a broken replica would leave the instance.
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

// checkRegion checks that a replica exists; Inspect has already checked its content.
func (h *heldInstance) checkRegion(f *nvram.Folder, id region.ID) error {
	name := farm.RegionName(id)
	names, err := f.Names()
	if err == nil && !slices.Contains(names, name) {
		err = fmt.Errorf("%w: there is no %s in %s", nvram.ErrGone, name, f.Path())
	}
	return err
}
