package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/wait"
)

// WriteBackups writes data at off to every backup of a region, and then to this machine's
// replica. The allocator replicates block headers with it. It fails with region.ErrDeparted if the
// tenure is over. If a backup is lost, WriteBackups waits for the next configuration
// and writes to the backups of that one.
//
// reservedIn is 0, or the result of ReserveBackups: then WriteBackups fails with region.ErrBackups if
// the replicas have changed since.
func (m *Machine) WriteBackups(t *region.Tenure, off uint64, data []byte, reservedIn uint32) error {
	for {
		before := m.Routes.Load()
		err := m.writeReplicas(t, off, data, reservedIn)
		if err == nil || errors.Is(err, region.ErrBackups) {
			return err
		}
		if err := m.AwaitReplacement(context.Background(), before, err); err != nil {
			return err
		}
	}
}

// writeReplicas makes one attempt at WriteBackups. It holds blocks, so that SendBlocks, which sends
// the block table to new backups, runs entirely before or after it.
//
// A route that names this machine as the primary may be older than the primary's configuration. It then
// leads to keys that the backups have ended when they applied that configuration: see route.BlocksKey.
// This machine's own replica has no such key, so Tenure.During stands in for it: the replica may stay
// here as a backup, to which the new primary sends its block table.
func (m *Machine) writeReplicas(t *region.Tenure, off uint64, data []byte, reservedIn uint32) error {
	m.cfg.Clock.Lock(&m.blocks)
	defer m.blocks.Unlock()
	rt, err := m.ownRoute(m.Routes.Load(), t)
	if err != nil {
		return err
	}
	if reservedIn != 0 && reservedIn != uint32(rt.LastReplicaChange) {
		return region.ErrBackups
	}
	if err := m.writeBackups(rt, t.ID(), off, data); err != nil {
		return err
	}
	return t.During(func() { t.Memory().CopyIn(off, data) })
}

// ownRoute returns the route of a region of which this machine is the primary. It fails with
// region.ErrDeparted if the tenure is over: another machine is the primary, or the region has left and
// come back. The routes must be loaded before the call: a tenure ends before routes say so.
func (m *Machine) ownRoute(routes *route.List, t *region.Tenure) (*route.Route, error) {
	rt := routes.Of(t.ID())
	if sabotage.BlocksOfOthers.Skipped() && rt != nil {
		return rt, nil
	}
	if rt == nil || !rt.PrimaryHere || rt.Local != t.Region || t.IsOver() {
		return nil, cmp.Or(m.Gone(), fmt.Errorf("%w: region %d", region.ErrDeparted, t.ID()))
	}
	return rt, nil
}

// writeBackups posts the WRITEs to all backups, and waits for all of them.
func (m *Machine) writeBackups(rt *route.Route, id region.ID, off uint64, data []byte) error {
	if sabotage.BlockBackups.Skipped() {
		return nil
	}
	w := m.anyWorker()
	wait := wait.NewWaiter(m.cfg.Clock)
	var failed error
	w.Lock()
	for _, b := range rt.Backups {
		failed = errors.Join(failed, w.PostWriteLocked(b, route.BlocksKey(rt.Placement), off, data, &wait))
		m.Replicas.Reached(step.Block)
	}
	w.Unlock()
	return errors.Join(failed, w.Await(&wait))
}

// SendBlocks copies the block table of a region to all its backups. This machine must be the
// region's primary. A new primary does this before anybody allocates (SOSP'15 section 5.5): the old
// primary may have failed halfway through a change, so that the table has to be repaired. A new
// backup has no table yet.
func (m *Machine) SendBlocks(in cluster.ID, id region.ID) error {
	m.cfg.Clock.Lock(&m.blocks)
	defer m.blocks.Unlock()
	if err := m.recovery.Check(in); err != nil {
		return err
	}
	rt := m.Route(id)
	if rt == nil || !rt.PrimaryHere {
		return m.noRegion(region.MakeAddr(id, 0))
	}
	if !m.cfg.Allocator.Has(id) {
		rt.Local.Repair()
	}
	off, n := rt.Local.Table()
	table := make([]byte, n)
	rt.Local.Memory().CopyOut(table, off)
	return m.writeBackups(rt, id, off, table)
}
