package farm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// grow allocates a new region with m as its primary, in two phases: first every
// replica makes room, then the configuration that has the region is stored.
func (c *Cluster) grow(m *machine, near region.ID) (*region.Region, error) {
	if c.reclaim() {
		c.cfg.Logger.Debug("epoch ended to reuse memory", "machine", m.id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.mu.configuration.PrimaryOf(m.id); c.cfg.RegionsMax > 0 && n >= c.cfg.RegionsMax {
		return nil, fmt.Errorf("%w: machine %d has all %d regions that it may have", region.ErrFull, m.id, n)
	}
	next, p, err := c.mu.configuration.Place(m.id, near)
	if err != nil {
		return nil, err
	}
	replicas := make(map[rdma.MachineID]*region.Region)
	for _, id := range p.Replicas() {
		if replicas[id], err = c.machines[id].makeRegion(p.Region, c.cfg.RegionBytes); err != nil {
			return nil, err
		}
	}
	if err := c.store.CompareAndSwap(c.mu.configuration.ID, next); err != nil {
		return nil, err
	}
	c.mu.configuration = next
	for id, r := range replicas {
		c.machines[id].regions[p.Region] = r
	}
	c.cfg.Logger.Info("region allocated", "region", p.Region, "primary", p.Primary, "backups", p.Backups)
	return m.regions[p.Region], c.announce(p)
}

// colocated says whether two regions have the same replicas.
func (c *Cluster) colocated(a, b region.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pa, okA := c.mu.configuration.Placement(a)
	pb, okB := c.mu.configuration.Placement(b)
	return okA && okB && pa.Primary == pb.Primary && slices.Equal(pa.Backups, pb.Backups)
}

// epochPatience is how long the end of an epoch may take: as long as the oldest
// transaction. It is tried again when memory is short again.
const epochPatience = 2 * time.Millisecond

// reclaim ends an epoch on all machines, so that freed memory can be used for
// objects of another size. It does so only where that makes a difference.
func (c *Cluster) reclaim() bool {
	if !c.epochs.TryLock() {
		return false
	}
	defer c.epochs.Unlock()
	waiting := 0
	for _, m := range c.machines {
		waiting += m.allocator.Waiting()
	}
	if waiting == 0 {
		return false
	}
	ids := make([]rdma.MachineID, len(c.machines))
	for i, m := range c.machines {
		ids[i] = m.id
	}
	epoch, ok := c.machines[0].txn.EndEpoch(context.Background(), ids, epochPatience)
	if !ok {
		return false
	}
	for _, m := range c.machines {
		if m.txn.Quiesce(epochPatience) != nil {
			return false
		}
	}
	for _, m := range c.machines {
		m.allocator.Advance(epoch)
	}
	return true
}
