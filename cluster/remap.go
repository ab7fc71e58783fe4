package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// Remapped lists how a change of the members affected the regions.
type Remapped struct {
	// Promoted are the regions in which a backup became the primary.
	Promoted []region.ID
	// Refilled are regions that have a new, still empty backup.
	Refilled []region.ID
	// Unavailable are regions that have lost their last full replica among the members:
	// they wait for one of the memories in Away.
	Unavailable []region.ID
	// Returned are regions that are available again, because a memory is back.
	Returned []region.ID
	// Lost are regions that an operator has given up.
	Lost []region.ID
	// Moving are regions of which a replica begins to move: they have one more backup, which is still
	// empty. Moved are regions of which a replica has left a machine for another one.
	Moving, Moved []region.ID
	// HandedOver are regions of which a backup has become the primary, and the primary a backup.
	HandedOver []region.ID
	// Growing are regions that have one more backup, still empty, because regions are to have
	// more replicas; Grown are regions whose further backups are all filled. Shrunk are regions
	// that have lost a replica because regions are to have fewer.
	Growing, Grown, Shrunk []region.ID
	// Short are regions that have fewer replicas than they should, because no
	// machine of another failure domain has room.
	Short []region.ID
}

func (r Remapped) String() string {
	var parts []string
	for _, s := range []struct {
		what    string
		regions []region.ID
	}{{"promoted", r.Promoted}, {"refilled", r.Refilled}, {"UNAVAILABLE", r.Unavailable},
		{"returned", r.Returned}, {"LOST", r.Lost}, {"moving", r.Moving}, {"moved", r.Moved}, {"handed over", r.HandedOver}, {"growing", r.Growing}, {"grown", r.Grown}, {"shrunk", r.Shrunk}, {"short of replicas", r.Short}} {
		if len(s.regions) > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", s.what, s.regions))
		}
	}
	return strings.Join(parts, ", ")
}

// Without returns the configuration after c, without the dead machines and with cm, a survivor, as
// CM (SOSP'15 section 5.2 steps 3 and 4). A backup is promoted for each failed primary, and every
// region gets as many replicas as there is room for. Load is balanced, replicas of a region are in
// different failure domains, and regions of a group stay together. If no survivor has all of a
// region, the region waits for the memories of the dead machines that had all of it.
func (c *Configuration) Without(dead []rdma.MachineID, cm rdma.MachineID) (*Configuration, Remapped) {
	d := c.Succeed()
	d.CM = cm
	for _, m := range dead {
		d.removeMember(m)
	}
	return d, d.remap(c)
}

// Restarted returns the configuration after c when all processes of c have ended. Its members are
// the machines that are back with their memory, which keep their replicas. A machine counts as dead
// if it is not back, or if it is back with another memory or an older copy of its memory. cm
// becomes the CM, whatever memory it is back with: regions that wait for another memory of cm no
// longer wait for it.
func (c *Configuration) Restarted(back []Member, cm Member) (*Configuration, Remapped) {
	d := c.Clone()
	var dead []rdma.MachineID
	for i, m := range c.Machines {
		k := slices.IndexFunc(back, func(b Member) bool { return b.Machine == m })
		if k < 0 || !c.IsMember(back[k]) {
			dead = append(dead, m)
			continue
		}
		d.Incarnation[i], d.Memory[i], d.Capacity[i] = back[k].Incarnation, back[k].Memory, back[k].Capacity
		d.Describe(back[k])
	}
	d, report := d.Without(dead, cm.Machine)
	if _, in := d.Member(cm.Machine); !in {
		d.AddMember(cm)
		d.bringBack(cm, nil)
	}
	d.forgetDrained()
	return d, report
}

// Filled returns the revision of c in which the regions are filled at machine m, or c itself if
// they are filled there already. It ignores regions that have become unavailable: their report is
// from an earlier configuration.
func (c *Configuration) Filled(m rdma.MachineID, regions []region.ID) *Configuration {
	d := c.Revise()
	changed := false
	for _, id := range regions {
		if i, ok := d.find(id); ok && d.Regions[i].IsAvailable() && slices.Contains(d.Regions[i].Filling, m) {
			d.Regions[i].noLongerFilling(m)
			changed = true
		}
	}
	if !changed {
		return c
	}
	return d
}

// Refuse returns the configuration after c for a machine m that has no room for the given regions.
// In it, m is no longer a backup of these regions, and gets no other regions. The regions get another
// backup if possible. If one of them moves to m, or does not need its replica there (NeedsFilling), its whole group stays
// where it was.
func (c *Configuration) Refuse(m rdma.MachineID, regions []region.ID) (*Configuration, Remapped) {
	d := c.Succeed()
	var groups []region.ID // that do not move or grow any more
	for _, id := range regions {
		if i, ok := d.find(id); ok && slices.Contains(d.Regions[i].Filling, m) {
			if d.Regions[i].movesTo(m) || !d.NeedsFilling(&d.Regions[i]) {
				groups = append(groups, d.Regions[i].Group)
			}
			d.Regions[i].dropBackup(m, d.ID)
		}
	}
	for i := range d.Regions {
		if p := &d.Regions[i]; (p.movesTo(m) || d.refusesGrowth(p, m)) && slices.Contains(groups, p.Group) {
			p.dropBackup(m, d.ID)
		}
	}
	if i, ok := slices.BinarySearch(d.Machines, m); ok {
		d.Capacity[i] = d.load()[m]
		if d.Capacity[i] == 0 {
			d.Capacity[i] = -1
		}
	}
	d.separate()
	return d, d.remap(c)
}

// dropBackup removes a backup, in the given configuration.
func (p *Placement) dropBackup(m rdma.MachineID, in ID) {
	p.Backups = slices.DeleteFunc(p.Backups, func(x rdma.MachineID) bool { return x == m })
	p.noLongerFilling(m)
	p.LastReplicaChange = in
}

// WithRoom returns the configuration after c in which machine m has room for capacity regions; 0
// means any number. m must have refused replicas before. It gets replicas that regions lack.
func (c *Configuration) WithRoom(m rdma.MachineID, capacity int) (*Configuration, Remapped) {
	d := c.Succeed()
	if i, ok := slices.BinarySearch(d.Machines, m); ok {
		d.Capacity[i] = capacity
	}
	return d, d.remap(c)
}

// separate dissolves the groups whose regions do not have the same replicas.
func (c *Configuration) separate() {
	for _, g := range c.groups() {
		if !c.isTogether(g) {
			c.dissolve(g)
		}
	}
}

// isTogether reports whether the regions of a group have the same replicas, or wait for the same
// memories.
func (c *Configuration) isTogether(group []int) bool {
	first := c.Regions[group[0]]
	return !slices.ContainsFunc(group, func(i int) bool {
		p := &c.Regions[i]
		return p.Primary != first.Primary || !slices.Equal(p.Backups, first.Backups) || !slices.Equal(p.Away, first.Away) || !p.moves(first.Move) || p.Had != first.Had
	})
}

// moves reports whether the region's move is the given one.
func (p *Placement) moves(move *Move) bool {
	if p.Move == nil || move == nil {
		return p.Move == move
	}
	return *p.Move == *move
}

// movesTo reports whether the region has a replica at m because one moves there.
func (p *Placement) movesTo(m rdma.MachineID) bool {
	return p.Move != nil && p.Move.To == m && slices.Contains(p.Backups, m)
}

// without returns a list without m, which is nil if nothing is left. It overwrites list.
func without(list []rdma.MachineID, m rdma.MachineID) []rdma.MachineID {
	list = slices.DeleteFunc(list, func(x rdma.MachineID) bool { return x == m })
	if len(list) == 0 {
		return nil
	}
	return list
}

// remap replaces the replicas of machines that were in the configuration before, but are not in c. It
// works on whole groups. For all groups it first drops the failed replicas and chooses primaries, and
// only then chooses backups, so that each choice sees the load.
func (c *Configuration) remap(before *Configuration) Remapped {
	var report Remapped
	groups := c.groups()
	for _, g := range groups {
		report.Promoted = append(report.Promoted, c.survive(g, before)...)
	}
	c.endBrokenMoves(before) // must come before refill, which counts replicas
	for i := range c.Regions {
		p := &c.Regions[i]
		if was, _ := before.Placement(p.Region); was.IsAvailable() && !p.IsAvailable() {
			report.Unavailable = append(report.Unavailable, p.Region)
		}
	}
	load := c.load()
	for _, g := range c.groups() {
		report.Refilled = append(report.Refilled, c.refill(g, load)...)
	}
	for i := range c.Regions {
		if c.Regions[i].IsAvailable() && len(c.Regions[i].Backups) < c.Least(&c.Regions[i])-1 {
			report.Short = append(report.Short, c.Regions[i].Region)
		}
	}
	slices.Sort(report.Promoted)
	slices.Sort(report.Refilled)
	return report
}

// groups returns indexes into Regions, by group, the largest first.
func (c *Configuration) groups() [][]int {
	by := make(map[region.ID][]int)
	for i := range c.Regions {
		by[c.Regions[i].Group] = append(by[c.Regions[i].Group], i)
	}
	groups := make([][]int, 0, len(by))
	for _, id := range slices.Sorted(maps.Keys(by)) {
		groups = append(groups, by[id])
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return len(b) - len(a) })
	return groups
}

// survive removes machines that are no longer members from the placements of a group's regions. If
// the primary is one of these machines, survive promotes a survivor. If no filled replica of a region
// survives, the region waits for the memory of any filled replica of the previous configuration.
func (c *Configuration) survive(group []int, before *Configuration) (promoted []region.ID) {
	gone := func(m rdma.MachineID) bool { _, ok := c.Member(m); return !ok }
	for _, i := range group {
		p := &c.Regions[i]
		if slices.ContainsFunc(p.Replicas(), gone) {
			p.LastReplicaChange = c.ID
		}
		for _, m := range slices.DeleteFunc(slices.Clone(p.Filling), func(m rdma.MachineID) bool { return !gone(m) }) {
			p.noLongerFilling(m)
		}
		p.Backups = slices.DeleteFunc(p.Backups, gone)
	}
	if first := c.Regions[group[0]]; !first.IsAvailable() || !gone(first.Primary) {
		return nil
	}
	// Promote one machine for the whole group, if any can be, so that its regions stay co-located.
	successor, together := c.successor(group)
	for _, i := range group {
		p := &c.Regions[i]
		if !together {
			var ok bool
			if successor, ok = c.successor([]int{i}); !ok {
				p.Away = before.whole(p.Region)
				continue
			}
		}
		p.Primary = successor
		p.Backups = slices.DeleteFunc(p.Backups, func(m rdma.MachineID) bool { return m == successor })
		p.LastPrimaryChange = c.ID
		promoted = append(promoted, p.Region)
	}
	if !together && !c.isTogether(group) {
		c.dissolve(group) // replicas at different machines are better than an unavailable region
	}
	return promoted
}

// successor returns the machine that has a backup of all regions of a group and is the primary of
// the fewest regions. ok is false if no machine has all of these backups.
func (c *Configuration) successor(group []int) (best rdma.MachineID, ok bool) {
	for _, m := range c.Regions[group[0]].Backups {
		whole := !slices.ContainsFunc(group, func(i int) bool {
			return !slices.Contains(c.Regions[i].Backups, m) || (slices.Contains(c.Regions[i].Filling, m) && !sabotage.FilledPrimary.Skipped())
		})
		if whole && (!ok || c.PrimaryOf(m) < c.PrimaryOf(best)) {
			best, ok = m, true
		}
	}
	return best, ok
}

// refill gives the regions of a group as many backups as they should have. If there are machines
// with room for all regions of the group, all get the same backups; otherwise each region gets what
// is available.
func (c *Configuration) refill(group []int, load map[rdma.MachineID]int) (refilled []region.ID) {
	if !c.Regions[group[0]].IsAvailable() {
		return nil // without a primary nothing can fill backups
	}
	for p := &c.Regions[group[0]]; len(p.Backups) < c.Least(p)-1; {
		m, ok := c.pickReplica(c.Regions[group[0]].Replicas(), load, len(group))
		if !ok {
			break
		}
		for _, i := range group {
			c.addBackup(i, m, load)
		}
		refilled = c.regionsOf(group)
	}
	if len(group) == 1 {
		return refilled
	}
	whole := true // all regions got the same backups
	for _, i := range group {
		if more := c.refill([]int{i}, load); more != nil {
			whole = false
			if !slices.Contains(refilled, more[0]) {
				refilled = append(refilled, more...)
			}
		}
	}
	if !whole {
		c.dissolve(group)
	}
	return refilled
}

// dissolve makes each region of a group a group of its own.
func (c *Configuration) dissolve(group []int) {
	for _, i := range group {
		c.Regions[i].Group = c.Regions[i].Region
	}
}

func (c *Configuration) addBackup(i int, m rdma.MachineID, load map[rdma.MachineID]int) {
	p := &c.Regions[i]
	p.Backups = append(p.Backups, m)
	p.Filling = append(p.Filling, m)
	p.LastReplicaChange = c.ID
	load[m]++
}

func (c *Configuration) regionsOf(group []int) []region.ID {
	ids := make([]region.ID, len(group))
	for k, i := range group {
		ids[k] = c.Regions[i].Region
	}
	return ids
}
