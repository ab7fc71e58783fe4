package transactions

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
)

// togetherPatience bounds how long a machine waits for the evidence and connections that all of its
// regions need, so that they become active together. After that, each group of regions becomes
// active as soon as its own backups are ready.
const togetherPatience = 20 * time.Millisecond

// A regionGroup has regions with the same backups, whose primary is this machine. A backup that
// cannot be reached holds up only the groups to which it belongs.
type regionGroup struct {
	backups []rdma.MachineID // ascending
	regions []region.ID
}

// groups returns all regions whose primary is this machine, and the same regions grouped by their
// backups.
func (r *run) groups() (all []region.ID, groups []regionGroup) {
	for _, p := range r.c.Regions { // any order
		if !p.IsPrimary(r.self) {
			continue
		}
		all = append(all, p.Region)
		backups := slices.Sorted(slices.Values(p.Backups))
		i := slices.IndexFunc(groups, func(g regionGroup) bool { return slices.Equal(g.backups, backups) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, regionGroup{backups: backups})
		}
		groups[i].regions = append(groups[i].regions, p.Region)
	}
	return all, groups
}

// activateAll runs steps 3 and 4 for all regions whose primary is this machine, and returns when
// they are active.
func (r *run) activateAll(ctx context.Context) error {
	all, groups := r.groups()
	end := r.t.cfg.Clock.Now().Add(togetherPatience)
	isUnready := func(g regionGroup) bool { return !r.isReadyLocked(g) } // locked: wait holds the lock
	allReady := false
	err := r.wait(ctx, func() bool {
		allReady = r.isTriedLocked(r.apart) && !slices.ContainsFunc(groups, isUnready) // locked: wait holds the lock
		return allReady || r.t.cfg.Clock.Now().After(end)
	})
	switch {
	case err != nil:
		return err
	case allReady:
		return r.activateSome(ctx, all)
	}
	return r.activateEach(ctx, groups)
}

// activateEach runs steps 3 and 4 for each group of regions as soon as the group is ready.
func (r *run) activateEach(ctx context.Context, groups []regionGroup) error {
	errs := make([]error, len(groups))
	left, done := len(groups), r.t.cfg.Clock.NewEvent()
	for i, g := range groups {
		r.t.cfg.Clock.Go(func() {
			err := r.wait(ctx, func() bool { return r.isReadyLocked(g) })
			if err == nil {
				err = r.activateSome(ctx, g.regions)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			errs[i] = err
			if left--; left == 0 {
				done.Set()
			}
		})
	}
	if len(groups) > 0 {
		done.Wait()
	}
	return errors.Join(errs...)
}

// isReadyLocked reports whether the backups of a group have sent their evidence, and this machine
// can write to them.
func (r *run) isReadyLocked(g regionGroup) bool {
	lacks := func(b rdma.MachineID) bool { return !r.mu.needs[b] && !sabotage.NeedRecovery.Skipped() }
	return !slices.ContainsFunc(g.backups, lacks) && r.isTriedLocked(g.backups)
}

// isTriedLocked reports whether this machine has tried to connect to each of the machines. A machine
// counts as tried if it was connected at Freeze, is connected by now, or can be connected only after
// the recovery is settled.
func (r *run) isTriedLocked(machines []rdma.MachineID) bool {
	return !slices.ContainsFunc(machines, func(x rdma.MachineID) bool { return slices.Contains(r.apart, x) && !r.mu.tried[x] })
}

// activateSome runs steps 3 and 4 for regions whose backups are ready. Activate comes last: until
// the objects of recovering transactions are locked, no other transaction may read them.
func (r *run) activateSome(ctx context.Context, ids []region.ID) error {
	for _, c := range r.claimed() {
		if !slices.Contains(ids, c.Region) || sabotage.Fetch.Skipped() {
			continue
		}
		if err := r.complete(ctx, c); err != nil {
			return err
		}
	}
	r.t.reached(recovery.StepFetched)
	if err := r.sendBlocks(ctx, ids); err != nil {
		return err
	}
	if err := r.m.Recovery().LockRegions(r.c.ID, ids); err != nil {
		return err
	}
	r.t.reached(recovery.StepLocked)
	r.m.Activate(r.c.ID, ids)
	r.t.reached(recovery.StepActive)
	if len(ids) > 0 && ctx.Err() == nil {
		r.t.spawn(func() { r.regionsActive(ids) })
	}
	return ctx.Err()
}

// regionsActive tells all others that regions are active.
func (r *run) regionsActive(ids []region.ID) {
	var list []entry
	for _, id := range ids {
		list = append(list, entry{Evidence: evidence.Evidence{Region: id}})
	}
	r.t.parallel(r.others(), func(to rdma.MachineID) { r.send(to, kindRegionActive, list) })
}
