// Package cluster defines configurations. A configuration says which machines are members, and
// where the replicas of each region are.
//
// A FaRM instance moves through a sequence of configurations (SOSP'15 section 3). A configuration
// is the tuple <i, S, F, CM>: an identifier that only grows, the machines, their failure domains,
// and the configuration manager, CM. A Store keeps it, and changes it by compare and swap: at most
// one machine can move the instance on from a given configuration.
//
// The CM also places regions: it gives a new region an identifier from a counter and picks its
// replicas. It balances load, respects co-location, and puts at most one replica into a failure
// domain. In this package these are pure functions: Place for a new region, Without when machines
// fail, With when one joins. Their caller makes the machines do what the new configuration says.
package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// ID identifies a configuration, that is, a membership and the primaries of regions. It grows by
// one with each configuration.
type ID uint32

// A Placement maps one region to its replicas.
type Placement struct {
	Region  region.ID
	Primary rdma.MachineID
	Backups []rdma.MachineID
	// Filling are the backups that do not have all of the region yet, because they became replicas
	// after the region was created. They cannot be promoted.
	Filling []rdma.MachineID `json:",omitempty"`
	// Kept are the machines in Filling that came back with an older state of the region, so that
	// they have less to copy. Earlier program versions leave it out.
	Kept []rdma.MachineID `json:",omitempty"`
	// Group is the first of the regions that are co-located with this one. All regions of a group
	// have the same replicas.
	Group region.ID
	// Away lists memories of machines that are not members; each has the whole region. The list is
	// empty while a member has the whole region. Otherwise the region cannot be used until one of
	// these memories is back; until then, Primary is the machine of the first of them, and all
	// Backups are Filling.
	Away []Memory `json:",omitempty"`
	// Before lists memories that have everything committed to the region before this configuration,
	// except those of full replicas. They are needed if the region becomes unavailable before a
	// transaction can have committed to it in this configuration. Earlier program versions leave it
	// out.
	Before []Memory `json:",omitempty"`
	// Move, if not nil, is the move of one of the replicas, which is why there is one more than there
	// should be. Programs before format 5 do not know moves.
	Move *Move `json:",omitempty"`
	// Pinned are the machines at which an operator has put a replica: balance does not move it away.
	// Programs that do not know it leave it out.
	Pinned []rdma.MachineID `json:",omitempty"`
	// Had, if not 0, says that the region is not resized yet. It is the number of replicas that
	// the region should have had before Replicas changed, or, for a region made after that
	// change, the number that it could get. Programs before format 6 do not know it.
	Had int `json:",omitempty"`
	// LastPrimaryChange is the last configuration in which another machine became the primary.
	// LastReplicaChange is the last in which the set of replicas changed (SOSP'15 section 5.3 step
	// 3).
	LastPrimaryChange, LastReplicaChange ID
}

// A Memory identifies a machine's non-volatile memory, from the time when it was empty (Token) to
// the last process with it that was a member (Life).
type Memory struct {
	Machine rdma.MachineID
	// Token is the random number that was drawn when the memory was empty; 0 if the program version
	// did not know tokens.
	Token uint64
	// Life is the incarnation of the machine when it was last a member. An older copy of the memory
	// does not know it. It is 0 if the program version recorded only tokens.
	Life uint64 `json:",omitempty"`
}

// matches reports whether a machine has come back with memory m.
func (m Memory) matches(back Member) bool {
	return m.Machine == back.Machine && back.Memory != 0 && (m.Token == back.Memory || m.Token == 0) && back.knows(m.Life)
}

// isOlder reports whether a machine has come back with an older state of m.
func (m Memory) isOlder(back Member) bool {
	return m.Machine == back.Machine && back.Memory != 0 && m.Token == back.Memory && !back.knows(m.Life)
}

// IsAvailable reports whether a member has all of the region.
func (p Placement) IsAvailable() bool { return len(p.Away) == 0 }

// Replicas returns the members that have a replica: the backups and, if the region is available,
// the primary.
func (p Placement) Replicas() []rdma.MachineID {
	if !p.IsAvailable() {
		return slices.Clone(p.Backups)
	}
	return append([]rdma.MachineID{p.Primary}, p.Backups...)
}

// Has reports whether machine m, a member, has a replica of the region.
func (p Placement) Has(m rdma.MachineID) bool {
	return p.IsPrimary(m) || slices.Contains(p.Backups, m)
}

// IsPrimary reports whether the region is available and machine m is its primary.
func (p Placement) IsPrimary(m rdma.MachineID) bool { return p.IsAvailable() && p.Primary == m }

func (p Placement) clone() Placement {
	p.Backups, p.Filling, p.Kept = slices.Clone(p.Backups), slices.Clone(p.Filling), slices.Clone(p.Kept)
	p.Away, p.Before, p.Pinned = slices.Clone(p.Away), slices.Clone(p.Before), slices.Clone(p.Pinned)
	return p
}

// noLongerFilling removes machine m from Filling, because m now has everything, or nothing.
func (p *Placement) noLongerFilling(m rdma.MachineID) {
	p.Filling, p.Kept = without(p.Filling, m), without(p.Kept, m)
}

// A Configuration is one step in the life of an instance. It is a value: a change makes a new
// Configuration.
type Configuration struct {
	// Cluster identifies the instance, so that memory of another instance is recognized.
	Cluster uint64
	// ID grows when membership or the replicas of existing regions change.
	ID ID
	// Revision grows with every change. Some changes keep ID: a new region, a filled backup, a new
	// root.
	Revision uint64
	Machines []rdma.MachineID // ascending
	// FailureDomain of Machines[i]; machines of one domain fail together.
	FailureDomain []int
	// Incarnation of Machines[i]: the random number that its process drew when it began. A machine
	// that fails and comes back has a new one.
	Incarnation []uint64
	// Memory is the token of the memory of Machines[i]: see Memory.
	Memory []uint64
	// Capacity is the number of regions for which Machines[i] has room; 0 means unlimited, a
	// negative number none.
	Capacity []int
	// Address, Zone and Protocol are what Machines[i] reports of itself: see Member. Programs
	// before format 4 leave them out, and drop what others had stored.
	Address  []string
	Zone     []string
	Protocol []protocol.Range
	// Speaks is the version of the protocol that all members know: see Agree. 0 stands for
	// version 1.
	Speaks protocol.Version
	CM     rdma.MachineID
	// Replicas is f+1, the number of copies that each region should have. If an operator
	// changes it, regions get their new number one after the other: see Resize.
	Replicas int
	// NextRegion is the identifier that the next region gets.
	NextRegion region.ID
	Regions    []Placement // ascending by Region
	// Lost are the regions that an operator has given up, ascending: see Forget.
	Lost []region.ID `json:",omitempty"`
	// Draining are the memories of machines that are to have no replicas: see Drain. Their Life
	// is 0. Programs before format 5 do not know them.
	Draining []Memory `json:",omitempty"`
	// Line grows when the configuration store was lost: see Refounded. Earlier program versions leave it out, and
	// drop what others had stored.
	Line Line `json:",omitempty"`
	// Gaps are the identifiers that the refoundings of Line have left out. Earlier program
	// versions leave Gaps out.
	Gaps []Gap `json:",omitempty"`
	// Root is the object from which all other objects can be found.
	Root region.Ptr `json:"-"`
	// Workers, RegionBytes and LogBytes are settings from the creation of the instance.
	Workers     int
	RegionBytes int64
	LogBytes    int64
}

// A Member is a configuration's entry for one machine.
type Member struct {
	Machine       rdma.MachineID
	FailureDomain int
	Incarnation   uint64
	Memory        uint64
	Capacity      int
	// Address is where the machine can be reached, in the terms of its provider.
	Address string `json:",omitempty"`
	// Zone is the path of the machine's location, the widest place first, as in "berlin/rack 3/host
	// 7". It is for human readers: replicas are placed by FailureDomain.
	Zone string `json:",omitempty"`
	// Protocol is the range of versions that its program speaks; zero if the program does not
	// report it.
	Protocol protocol.Range `json:",omitzero"`
	// Lives are the incarnations of a machine that comes back, in this order: the last life in which
	// its memory was given a configuration, the lives that have begun since, and this life. Any of
	// them may be the last life that was a member. 0 stands for an unknown life. Lives is nil if the
	// program does not know lives. No configuration stores it.
	Lives []uint64 `json:",omitempty"`
}

// knows reports whether a life of the machine can have left behind the memory with which the machine
// comes back: the life that wrote the memory, or a later life that has changed nothing. If lives are
// not known, knows reports true.
func (m Member) knows(life uint64) bool {
	return life == 0 || m.Lives == nil || slices.Contains(m.Lives, life) || slices.Contains(m.Lives, 0) || sabotage.OldCopies.Skipped()
}

// ErrNoRoom means that a region cannot be placed.
var ErrNoRoom = errors.New("cluster: not enough failure domains for the replicas of a region")

// Clone returns a copy that shares nothing with c.
func (c *Configuration) Clone() *Configuration {
	d := *c
	d.Machines = slices.Clone(c.Machines)
	d.FailureDomain = slices.Clone(c.FailureDomain)
	d.Incarnation = slices.Clone(c.Incarnation)
	d.Memory = slices.Clone(c.Memory)
	d.Capacity = slices.Clone(c.Capacity)
	d.Address, d.Zone, d.Protocol = slices.Clone(c.Address), slices.Clone(c.Zone), slices.Clone(c.Protocol)
	d.Lost, d.Draining, d.Line = slices.Clone(c.Lost), slices.Clone(c.Draining), slices.Clone(c.Line)
	d.Gaps = slices.Clone(c.Gaps)
	d.Regions = slices.Clone(c.Regions)
	for i := range d.Regions {
		d.Regions[i] = d.Regions[i].clone()
	}
	return &d
}

// Revise returns a copy of c with the next revision, in which the caller can change anything except
// memberships and replicas.
func (c *Configuration) Revise() *Configuration {
	d := c.Clone()
	d.Revision++
	return d
}

// Succeed returns a copy of c with the next identifier.
func (c *Configuration) Succeed() *Configuration {
	d := c.Revise()
	d.ID++
	return d
}

// Member returns c's entry for machine m; false if m is not a member.
func (c *Configuration) Member(m rdma.MachineID) (Member, bool) {
	i, ok := slices.BinarySearch(c.Machines, m)
	if !ok {
		return Member{}, false
	}
	return Member{
		Machine: m, FailureDomain: c.FailureDomain[i], Incarnation: c.Incarnation[i], Memory: c.Memory[i], Capacity: c.Capacity[i],
		Address: c.Address[i], Zone: c.Zone[i], Protocol: c.Protocol[i],
	}, true
}

// AddMember makes m a member. Its machine must not be one yet, and c must be a configuration that
// is still being made.
func (c *Configuration) AddMember(m Member) {
	i, _ := slices.BinarySearch(c.Machines, m.Machine)
	c.Machines = slices.Insert(c.Machines, i, m.Machine)
	c.FailureDomain = slices.Insert(c.FailureDomain, i, m.FailureDomain)
	c.Incarnation = slices.Insert(c.Incarnation, i, m.Incarnation)
	c.Memory = slices.Insert(c.Memory, i, m.Memory)
	c.Capacity = slices.Insert(c.Capacity, i, m.Capacity)
	c.Address = slices.Insert(c.Address, i, m.Address)
	c.Zone = slices.Insert(c.Zone, i, m.Zone)
	c.Protocol = slices.Insert(c.Protocol, i, m.Protocol)
}

func (c *Configuration) removeMember(m rdma.MachineID) {
	if i, ok := slices.BinarySearch(c.Machines, m); ok {
		c.Machines = slices.Delete(c.Machines, i, i+1)
		c.FailureDomain = slices.Delete(c.FailureDomain, i, i+1)
		c.Incarnation = slices.Delete(c.Incarnation, i, i+1)
		c.Memory = slices.Delete(c.Memory, i, i+1)
		c.Capacity = slices.Delete(c.Capacity, i, i+1)
		c.Address = slices.Delete(c.Address, i, i+1)
		c.Zone = slices.Delete(c.Zone, i, i+1)
		c.Protocol = slices.Delete(c.Protocol, i, i+1)
	}
}

// Placement returns the placement of region id.
func (c *Configuration) Placement(id region.ID) (Placement, bool) {
	if i, ok := c.find(id); ok {
		return c.Regions[i], true
	}
	return Placement{}, false
}

// find returns the index of region id in Regions, and whether it is there.
func (c *Configuration) find(id region.ID) (int, bool) {
	return slices.BinarySearchFunc(c.Regions, id, func(p Placement, id region.ID) int { return cmp.Compare(p.Region, id) })
}

// Place returns the configuration with one more region, whose primary is the given machine. If near
// is a region with the given primary and enough replicas, and all of them have room for one more
// region, the new region gets the same replicas. Objects in both regions then stay co-located.
// Otherwise Place picks backups.
func (c *Configuration) Place(primary rdma.MachineID, near region.ID) (*Configuration, Placement, error) {
	if c.domain(primary) < 0 {
		return nil, Placement{}, fmt.Errorf("%w: machine %d is no member", ErrNoRoom, primary)
	}
	d := c.Revise()
	load := c.load()
	p := Placement{Region: d.NextRegion, Primary: primary, Group: d.NextRegion, LastPrimaryChange: d.ID, LastReplicaChange: d.ID}
	n, ok := c.Placement(near)
	if ok && n.IsPrimary(primary) && len(n.Backups) >= min(c.Least(&n), c.domainsWith(primary))-1 && c.haveRoom(load, n.Replicas(), 1) {
		// If the group is being moved, the region is part of the move: it is complete at the target from the
		// beginning. It is resized with the group.
		p.Backups, p.Group, p.Move, p.Pinned, p.Had = slices.Clone(n.Backups), n.Group, n.Move, slices.Clone(n.Pinned), n.Had
	} else if err := c.pickBackups(&p, load); err != nil {
		return nil, Placement{}, err
	}
	d.NextRegion++
	d.Regions = append(d.Regions, p)
	return d, p.clone(), nil
}

// pickBackups picks the least loaded machines of other failure domains. While machines are away,
// there may be fewer domains than replicas. A new region then gets as many replicas as there are
// domains, and more when the machines are back. While regions wait for room to grow, it gets at least as many as those have,
// and grows with them. The first region must get all its replicas.
func (c *Configuration) pickBackups(p *Placement, load map[rdma.MachineID]int) error {
	if !c.haveRoom(load, []rdma.MachineID{p.Primary}, 1) {
		return fmt.Errorf("%w: machine %d has all regions that it has room for", ErrNoRoom, p.Primary)
	}
	p.Backups = []rdma.MachineID{}
	for len(p.Backups) < c.Replicas-1 {
		m, ok := c.pickReplica(p.Replicas(), load, 1)
		if !ok && len(c.Regions) > 0 && len(p.Backups)+1 == c.domainsWith(p.Primary) {
			return nil
		}
		if !ok && len(p.Backups)+1 >= c.fewest() {
			p.Had = len(p.Backups) + 1
			return nil
		}
		if !ok {
			return fmt.Errorf("%w: %d replicas wanted, %d found", ErrNoRoom, c.Replicas, len(p.Backups)+1)
		}
		p.Backups = append(p.Backups, m)
	}
	return nil
}

// domains returns the number of failure domains of members that may get replicas.
func (c *Configuration) domains() int { return c.countDomains(nil) }

// domainsWith is like domains, and counts machine m's, too: a machine that is being drained is the
// primary of the regions that it makes.
func (c *Configuration) domainsWith(m rdma.MachineID) int { return c.countDomains([]int{c.domain(m)}) }

// countDomains returns the number of the given failure domains and of those of members that may get
// replicas.
func (c *Configuration) countDomains(domains []int) int {
	for i, m := range c.Machines {
		if !c.IsDraining(m) {
			domains = append(domains, c.FailureDomain[i])
		}
	}
	slices.Sort(domains)
	return len(slices.Compact(domains))
}

// pickReplica returns the least loaded machine with room for n more regions that is not being
// drained, in a failure domain without a replica of the region.
func (c *Configuration) pickReplica(have []rdma.MachineID, load map[rdma.MachineID]int, n int) (best rdma.MachineID, ok bool) {
	used := make(map[int]bool)
	for _, m := range have {
		used[c.domain(m)] = true
	}
	for i, m := range c.Machines {
		if !used[c.FailureDomain[i]] && !c.IsDraining(m) && c.haveRoom(load, []rdma.MachineID{m}, n) && (!ok || load[m] < load[best]) {
			best, ok = m, true
		}
	}
	return best, ok
}

// load returns the number of replicas at each machine.
func (c *Configuration) load() map[rdma.MachineID]int {
	load := make(map[rdma.MachineID]int)
	for i := range c.Regions {
		for _, m := range c.Regions[i].Replicas() {
			load[m]++
		}
	}
	return load
}

// haveRoom reports whether each of the machines has room for n more regions.
func (c *Configuration) haveRoom(load map[rdma.MachineID]int, machines []rdma.MachineID, n int) bool {
	return !slices.ContainsFunc(machines, func(m rdma.MachineID) bool {
		member, ok := c.Member(m)
		return !ok || (member.Capacity != 0 && load[m]+n > member.Capacity)
	})
}

// domain returns the failure domain of m, or -1 if m is not a member.
func (c *Configuration) domain(m rdma.MachineID) int {
	if i, ok := slices.BinarySearch(c.Machines, m); ok {
		return c.FailureDomain[i]
	}
	return -1
}

// Keeps reports whether machine m has a replica of region id.
func (c *Configuration) Keeps(m rdma.MachineID, id region.ID) bool {
	p, ok := c.Placement(id)
	return ok && p.Has(m)
}

// PrimaryOf counts the regions whose primary is machine m.
func (c *Configuration) PrimaryOf(m rdma.MachineID) int {
	n := 0
	for i := range c.Regions {
		if c.Regions[i].IsPrimary(m) {
			n++
		}
	}
	return n
}
