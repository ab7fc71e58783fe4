package farm

import (
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// grow allocates a new region with m as its primary, in two phases: first every
// replica makes room, then the configuration that has the region is stored.
func (c *Cluster) grow(m *machine, near region.ID) (*region.Region, error) {
	c.reclaim()
	c.cfg.Clock.Lock(&c.mu.Mutex)
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
	if err := c.store.CompareAndSwap(c.mu.configuration.Revision, next); err != nil {
		return nil, err
	}
	c.mu.configuration = next
	for id, r := range replicas { // any order: it fills another map
		c.machines[id].regions[p.Region] = r
	}
	c.cfg.Logger.Info("region allocated", "region", p.Region, "primary", p.Primary, "backups", p.Backups)
	return m.regions[p.Region], c.announce(p)
}

// colocated says whether two regions have the same replicas.
func (c *Cluster) colocated(a, b region.ID) bool {
	c.cfg.Clock.Lock(&c.mu.Mutex)
	defer c.mu.Unlock()
	pa, okA := c.mu.configuration.Placement(a)
	pb, okB := c.mu.configuration.Placement(b)
	return okA && okB && pa.Primary == pb.Primary && slices.Equal(pa.Backups, pb.Backups)
}
