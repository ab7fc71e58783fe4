package simtest

import (
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// copies tracks which regions a machine's memory certainly has in full. A memory has a region if the
// current configuration places a replica there that is not filling, and the memory has not been
// destroyed since. The tests use copies to check that no region is lost while a memory has it.
type copies struct {
	now *cluster.Configuration // the current one; nil before the first
	// void are replicas that count as full in the present configuration, although the machine's
	// memory was destroyed. lives are the incarnations of each machine that have been a member.
	// ended are the incarnations whose memory was destroyed.
	void  map[replica]bool
	lives map[rdma.MachineID][]uint64
	ended map[uint64]bool
}

// A replica is a region in the memory of one machine.
type replica struct {
	machine rdma.MachineID
	region  region.ID
}

func newCopies() *copies {
	return &copies{void: make(map[replica]bool), lives: make(map[rdma.MachineID][]uint64), ended: make(map[uint64]bool)}
}

// stored records a configuration, and returns an error if it loses a region that some memory
// has in full.
func (k *copies) stored(now *cluster.Configuration) error {
	var err error
	if k.now != nil {
		err = k.loses(now)
	}
	k.now = now.Clone()
	for r := range k.void { // the order of deletions has no effect
		if p, ok := now.Placement(r.region); !ok || !isFull(p, r.machine) {
			delete(k.void, r)
		}
	}
	for i, m := range now.Machines {
		if life := now.Incarnation[i]; !slices.Contains(k.lives[m], life) {
			k.lives[m] = append(k.lives[m], life)
		}
		if k.ended[now.Incarnation[i]] {
			k.voidAll(m)
		}
	}
	for _, p := range now.Regions {
		k.voidAway(p)
	}
	return err
}

// voidAway records memories for which a region waits although they have been destroyed. The
// region may wait again for a memory that it had given up: see cluster.Configuration.Follow.
func (k *copies) voidAway(p cluster.Placement) {
	for _, a := range p.Away {
		if !slices.ContainsFunc(p.Away, func(b cluster.Memory) bool { return b.Machine == a.Machine && !k.ended[b.Life] }) {
			k.void[replica{a.Machine, p.Region}] = true
		}
	}
}

// loses returns an error if the next configuration has lost a region that some memory has in
// full.
func (k *copies) loses(next *cluster.Configuration) error {
	for _, p := range k.now.Regions {
		if have := k.of(p); len(have) > 0 && slices.Contains(next.Lost, p.Region) {
			return fmt.Errorf("configuration %d of machines %v has lost region %d, which is in the memory of machines %v in full", next.ID, next.Machines, p.Region, have)
		}
	}
	return nil
}

// of returns the machines whose memory certainly has all of the region placed by p.
func (k *copies) of(p cluster.Placement) []rdma.MachineID {
	return slices.DeleteFunc(full(p), func(m rdma.MachineID) bool { return k.void[replica{m, p.Region}] })
}

// full returns the machines that are replicas of a region and not filling, and those whose memory
// the region waits for.
func full(p cluster.Placement) (machines []rdma.MachineID) {
	for _, a := range p.Away {
		machines = append(machines, a.Machine)
	}
	for _, m := range p.Replicas() {
		if !slices.Contains(p.Filling, m) {
			machines = append(machines, m)
		}
	}
	return machines
}

// isFull reports whether machine m is among the machines that full returns.
func isFull(p cluster.Placement, m rdma.MachineID) bool { return slices.Contains(full(p), m) }

// destroyed records that a machine's memory is gone.
func (k *copies) destroyed(m rdma.MachineID) {
	if k.now == nil {
		return
	}
	for _, life := range k.lives[m] {
		k.ended[life] = true
	}
	k.voidAll(m)
}

// voidAll adds to void all replicas of a machine that count as full.
func (k *copies) voidAll(m rdma.MachineID) {
	for _, p := range k.now.Regions {
		if isFull(p, m) {
			k.void[replica{m, p.Region}] = true
		}
	}
}

// isOnly reports whether some region has a full replica at machine m and at no other machine for
// which counts is true.
func (k *copies) isOnly(m rdma.MachineID, counts func(rdma.MachineID) bool) bool {
	return k.now != nil && slices.ContainsFunc(k.now.Regions, func(p cluster.Placement) bool {
		have := slices.DeleteFunc(k.of(p), func(x rdma.MachineID) bool { return x != m && !counts(x) })
		return len(have) == 1 && have[0] == m
	})
}

// suffice reports whether the machines for which counts is true can continue without the others:
// they are a majority of the configuration, and have all regions. A member whose memory was
// destroyed does not count until the others have let it join again.
func (k *copies) suffice(counts func(rdma.MachineID) bool) bool {
	return k.isMajority(counts) && !slices.ContainsFunc(k.now.Regions, func(p cluster.Placement) bool {
		return !slices.ContainsFunc(k.of(p), counts)
	})
}

// isMajority reports whether the machines for which counts is true are a majority of the
// configuration.
func (k *copies) isMajority(counts func(rdma.MachineID) bool) bool {
	if k.now == nil {
		return false
	}
	n := 0
	for i, m := range k.now.Machines {
		if counts(m) && !k.ended[k.now.Incarnation[i]] {
			n++
		}
	}
	return 2*n > len(k.now.Machines)
}

// canLose reports whether the memory of machine m may be destroyed, provided that no machine
// is about to be evicted: others have all of its regions in full, and the machines that keep
// their memory are still a majority.
func (k *copies) canLose(m rdma.MachineID) bool {
	return !k.isOnly(m, anybody) && k.isMajority(func(x rdma.MachineID) bool { return x != m })
}

// hasSingle reports whether the instance keeps one replica of each region, or some region has no backup.
func (k *copies) hasSingle() bool {
	return k.now.Replicas == 1 || slices.ContainsFunc(k.now.Regions, func(p cluster.Placement) bool { return len(p.Backups) == 0 })
}

// isMember reports whether machine m is in the current configuration.
func (k *copies) isMember(m rdma.MachineID) bool {
	if k.now == nil {
		return false
	}
	_, in := k.now.Member(m)
	return in
}
