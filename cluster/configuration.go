// Package cluster says which machines there are and which of them hold which
// regions.
//
// A FaRM instance moves through a sequence of configurations (SOSP'15 section
// 3). A configuration is the tuple <i, S, F, CM>: an identifier that only
// grows, the machines, their failure domains, and the configuration manager,
// CM. It is kept in a Store that changes it by compare and swap on the
// identifier, so that at most one machine can move the instance on from a
// given configuration.
//
// The CM also decides where regions live: it gives a new region an identifier
// from a counter and picks its replicas, balancing load and honouring
// co-location, one replica to a failure domain. In this package that is the
// pure function Configuration.Place; asking the replicas to make room, in two
// phases, is the caller's business.
package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// ID identifies a configuration. It only grows.
type ID uint32

// A Placement maps one region to its replicas.
type Placement struct {
	Region  region.ID
	Primary rdma.MachineID
	Backups []rdma.MachineID
}

// Replicas returns the primary and the backups.
func (p Placement) Replicas() []rdma.MachineID {
	return append([]rdma.MachineID{p.Primary}, p.Backups...)
}

// A Configuration is one step in the life of an instance. It is a value: a
// change makes another one with a higher ID.
type Configuration struct {
	ID       ID
	Machines []rdma.MachineID // ascending
	// FailureDomain of Machines[i]; machines of one domain fail together.
	FailureDomain []int
	CM            rdma.MachineID
	// Replicas is f+1, how many copies of each region there are.
	Replicas int
	// NextRegion is the identifier that the next region gets.
	NextRegion region.ID
	Regions    []Placement // ascending by Region
	// Root is the object from which everything else is found.
	Root region.Ptr `json:"-"`
	// Workers, RegionBytes and LogBytes are what the instance was made with.
	Workers     int
	RegionBytes int64
	LogBytes    int64
}

// ErrNoRoom means that a region cannot be placed.
var ErrNoRoom = errors.New("cluster: not enough failure domains for the replicas of a region")

// Clone returns a copy that shares nothing with c.
func (c *Configuration) Clone() *Configuration {
	d := *c
	d.Machines = slices.Clone(c.Machines)
	d.FailureDomain = slices.Clone(c.FailureDomain)
	d.Regions = slices.Clone(c.Regions)
	for i := range d.Regions {
		d.Regions[i].Backups = slices.Clone(d.Regions[i].Backups)
	}
	return &d
}

// Placement returns where region id lives.
func (c *Configuration) Placement(id region.ID) (Placement, bool) {
	i, ok := slices.BinarySearchFunc(c.Regions, id, func(p Placement, id region.ID) int { return int(int64(p.Region) - int64(id)) })
	if !ok {
		return Placement{}, false
	}
	return c.Regions[i], true
}

// Place returns the configuration in which one more region exists, whose
// primary is at the machine asked for. With near given, the new region gets
// exactly near's replicas, so that objects in both stay co-located; near must
// have that primary.
func (c *Configuration) Place(primary rdma.MachineID, near region.ID) (*Configuration, Placement, error) {
	d := c.Clone()
	p := Placement{Region: d.NextRegion, Primary: primary}
	if n, ok := c.Placement(near); ok && n.Primary == primary {
		p.Backups = slices.Clone(n.Backups)
	} else {
		var err error
		if p.Backups, err = c.pickBackups(primary); err != nil {
			return nil, Placement{}, err
		}
	}
	d.ID++
	d.NextRegion++
	d.Regions = append(d.Regions, p)
	return d, p, nil
}

// pickBackups picks the least loaded machines of other failure domains.
func (c *Configuration) pickBackups(primary rdma.MachineID) ([]rdma.MachineID, error) {
	load := make(map[rdma.MachineID]int)
	for _, p := range c.Regions {
		for _, m := range p.Replicas() {
			load[m]++
		}
	}
	order := slices.Clone(c.Machines)
	slices.SortStableFunc(order, func(a, b rdma.MachineID) int { return load[a] - load[b] })
	used := map[int]bool{c.domain(primary): true}
	backups := []rdma.MachineID{}
	for _, m := range order {
		if len(backups) == c.Replicas-1 {
			break
		}
		if d := c.domain(m); !used[d] {
			used[d] = true
			backups = append(backups, m)
		}
	}
	if len(backups) < c.Replicas-1 {
		return nil, fmt.Errorf("%w: %d replicas wanted, %d failure domains", ErrNoRoom, c.Replicas, len(used))
	}
	return backups, nil
}

func (c *Configuration) domain(m rdma.MachineID) int {
	if i, ok := slices.BinarySearch(c.Machines, m); ok {
		return c.FailureDomain[i]
	}
	return -1
}

// Keeps says whether machine m has a replica of region id.
func (c *Configuration) Keeps(m rdma.MachineID, id region.ID) bool {
	p, ok := c.Placement(id)
	return ok && slices.Contains(p.Replicas(), m)
}

// PrimaryOf counts the regions whose primary is machine m.
func (c *Configuration) PrimaryOf(m rdma.MachineID) int {
	n := 0
	for i := range c.Regions {
		if c.Regions[i].Primary == m {
			n++
		}
	}
	return n
}
