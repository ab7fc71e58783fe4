package transactions

import (
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
)

// coordinator returns the machine that decides a transaction: its own coordinator if that machine is a
// member, and otherwise the member with the highest hash for the transaction (rendezvous hashing).
func coordinator(c *cluster.Configuration, id record.ID) rdma.MachineID {
	if _, ok := c.Member(id.Machine); ok {
		return id.Machine
	}
	var winner rdma.MachineID
	best := uint64(0)
	for i, m := range c.Machines {
		if h := drawn(id, m); i == 0 || h > best {
			winner, best = m, h
		}
	}
	return winner
}

// machineHash hashes a transaction and a machine (the finalizer of SplitMix64).
func drawn(id record.ID, m rdma.MachineID) uint64 {
	x := id.Seq
	for _, v := range []uint64{uint64(id.Config), uint64(id.Machine), uint64(id.Worker), uint64(m)} {
		x += v + 0x9e3779b97f4a7c15
		x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
		x = (x ^ (x >> 27)) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// replicasOf returns the machines that have a replica of one of the regions.
func replicasOf(c *cluster.Configuration, regions []region.ID) []rdma.MachineID {
	var all []rdma.MachineID
	for _, id := range regions {
		p, ok := c.Placement(id)
		if !ok {
			continue // the region is lost, with all its replicas
		}
		for _, m := range p.Replicas() {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	slices.Sort(all)
	return all
}
