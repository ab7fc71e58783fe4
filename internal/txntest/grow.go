package txntest

import (
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
)

// grow makes a region with m as its primary.
func (x *Instance) grow(m *machine, near region.ID) (*region.Region, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	next, p, err := x.mu.configuration.Place(m.id, near)
	if err != nil {
		return nil, err
	}
	for _, id := range p.Replicas() {
		if err := x.machines[id].makeReplica(p, x.cfg.RegionBytes); err != nil {
			return nil, err
		}
	}
	for _, each := range x.machines {
		each.txn.AddRegion(p, each.regions[p.Region]) // nil where there is no replica
	}
	x.mu.configuration = next
	return m.regions[p.Region], nil
}

// makeReplica makes an empty replica of a region, which others can reach.
func (m *machine) makeReplica(p cluster.Placement, bytes int64) error {
	r, err := region.Format(p.Region, nvram.NewMemory(bytes))
	if err != nil {
		return err
	}
	if err := m.nic.Register(route.RegionKey(p.Region), r.Memory()); err != nil {
		return err
	}
	if _, err := route.ReceiveBlocks(m.nic, p, r, 0); err != nil {
		return err
	}
	m.regions[p.Region] = r
	return nil
}

// colocated reports whether two regions have the same replicas.
func (x *Instance) colocated(a, b region.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	pa, okA := x.mu.configuration.Placement(a)
	pb, okB := x.mu.configuration.Placement(b)
	return okA && okB && slices.Equal(pa.Replicas(), pb.Replicas())
}
