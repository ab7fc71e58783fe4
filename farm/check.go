package farm

import (
	"context"
	"fmt"
	"iter"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Fault is one fault that Check found, at the replica of one machine.
type Fault struct {
	Machine rdma.MachineID
	region.Fault
}

func (f Fault) String() string { return fmt.Sprintf("machine %d: %v", f.Machine, f.Fault) }

// CheckMembers walks every region of configuration c and returns the faults: see Local.Check.
// All machines of c must be among members, all transactions of earlier configurations
// recovered, and all backups filled. The caller must have called HoldMoves before it took c.
func CheckMembers(c *cluster.Configuration, members []*Member, reachable iter.Seq[region.Ptr]) ([]Fault, error) {
	machines := make(map[rdma.MachineID]*Member)
	for _, m := range members {
		if err := m.txn.Quiesce(closePatience); err != nil {
			return nil, err
		}
		machines[m.id] = m
	}
	for _, m := range members { // after all have quiesced, because a truncation at one machine frees annexes at others
		if err := m.awaitNoAnnexes(m.clock); err != nil {
			return nil, err
		}
	}
	for _, m := range members { // no replica may give storage back while replicas are compared
		m.clock.Lock(&m.epochs.giving)
		defer m.epochs.giving.Unlock()
	}
	for _, id := range c.Machines {
		if machines[id] == nil {
			return nil, fmt.Errorf("farm: check: machine %d is not here", id)
		}
	}
	if away := c.Unavailable(); len(away) > 0 {
		return nil, fmt.Errorf("farm: check: regions %v are unavailable: their machines are not here", away)
	}
	for _, p := range c.Regions {
		for _, id := range p.Replicas() {
			if machines[id].replica(p.Region) == nil {
				return nil, fmt.Errorf("farm: check: machine %d has no replica of region %d any more: configuration %d is not the last", id, p.Region, c.ID)
			}
		}
	}
	return checkPlacements(c.Regions, machines, c.Root, reachable), nil
}

// checkPlacements checks all replicas of regions, and the allocators of their machines. reachable are all objects in
// use but root.
func checkPlacements(placements []cluster.Placement, machines map[rdma.MachineID]*Member, root region.Ptr, reachable iter.Seq[region.Ptr]) []Fault {
	withRoot := func(yield func(region.Ptr) bool) {
		if !yield(root) {
			return
		}
		for p := range reachable {
			if !yield(p) {
				return
			}
		}
	}
	var faults []Fault
	add := func(m rdma.MachineID, fs []region.Fault) {
		for _, f := range fs {
			faults = append(faults, Fault{m, f})
		}
	}
	checked := make(map[rdma.MachineID]bool)
	for _, p := range placements {
		for _, id := range p.Replicas() {
			if !checked[id] {
				checked[id] = true
				add(id, machines[id].allocator.Check())
			}
		}
	}
	for _, p := range placements {
		primary := machines[p.Primary].replica(p.Region)
		add(p.Primary, primary.Check(withRoot))
		for _, b := range p.Backups {
			backup := machines[b].replica(p.Region)
			unsound, _ := backup.Sound(context.Background()) // fails only if its context ends, and this one never does
			add(b, unsound)
			add(b, primary.Compare(backup))
		}
	}
	return faults
}
