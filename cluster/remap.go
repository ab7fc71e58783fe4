package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// Remapped says what a change of the members did to the regions.
type Remapped struct {
	// Promoted are regions of which a backup became the primary.
	Promoted []region.ID
	// Refilled are regions that have a new, still empty backup.
	Refilled []region.ID
	// Lost are regions that have now lost all replicas, or all but such as had
	// not been filled yet. Nobody can read them any more.
	Lost []region.ID
	// Short are regions that have fewer replicas than they should, because no
	// machine of another failure domain has room.
	Short []region.ID
}

func (r Remapped) String() string {
	var parts []string
	for _, s := range []struct {
		what    string
		regions []region.ID
	}{{"promoted", r.Promoted}, {"refilled", r.Refilled}, {"LOST", r.Lost}, {"short of replicas", r.Short}} {
		if len(s.regions) > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", s.what, s.regions))
		}
	}
	return strings.Join(parts, ", ")
}

// Without returns the configuration after c that has none of the dead machines
// and whose CM is cm, a survivor (SOSP'15 section 5.2 steps 3 and 4). A survivor
// of a failed primary is promoted, and every region gets as many replicas as
// there is room for. Load is balanced, replicas of a region are in different
// failure domains, and regions of a group stay together.
func (c *Configuration) Without(dead []rdma.MachineID, cm rdma.MachineID) (*Configuration, Remapped) {
	d := c.Succeed()
	d.CM = cm
	for _, m := range dead {
		d.removeMember(m)
	}
	return d, d.remap()
}

// Reborn returns the configuration after c, all of whose processes have ended, in
// which those of its machines take part that have come back with their memory.
// They keep their replicas; the other machines are dead. CM is cm.
func (c *Configuration) Reborn(back []Member, cm rdma.MachineID) (*Configuration, Remapped) {
	d := c.Clone()
	var dead []rdma.MachineID
	for i, m := range c.Machines {
		k := slices.IndexFunc(back, func(b Member) bool { return b.Machine == m })
		if k < 0 {
			dead = append(dead, m)
			continue
		}
		d.Incarnation[i], d.Capacity[i] = back[k].Incarnation, back[k].Capacity
	}
	return d.Without(dead, cm)
}

// With returns the configuration after c in which m is a member too, which it
// must not have been, with room for replicas that regions are short of.
func (c *Configuration) With(m Member) (*Configuration, Remapped) {
	d := c.Succeed()
	d.AddMember(m)
	return d, d.remap()
}

// Filled returns the revision of c in which machine m has all of the regions, or
// c itself if that is what c says.
func (c *Configuration) Filled(m rdma.MachineID, regions []region.ID) *Configuration {
	d := c.Revise()
	changed := false
	for _, id := range regions {
		if i, ok := d.find(id); ok && slices.Contains(d.Regions[i].Filling, m) {
			d.Regions[i].Filling = without(d.Regions[i].Filling, m)
			changed = true
		}
	}
	if !changed {
		return c
	}
	return d
}

// Refuse returns the configuration after c in which machine m, which has no room
// for them, is not to be filled with the given regions, nor given others. They
// get another backup if there is one.
func (c *Configuration) Refuse(m rdma.MachineID, regions []region.ID) (*Configuration, Remapped) {
	d := c.Succeed()
	for _, id := range regions {
		if i, ok := d.find(id); ok && slices.Contains(d.Regions[i].Filling, m) {
			p := &d.Regions[i]
			p.Backups, p.Filling = slices.DeleteFunc(p.Backups, func(x rdma.MachineID) bool { return x == m }), without(p.Filling, m)
			p.LastReplicaChange = d.ID
		}
	}
	if i, ok := slices.BinarySearch(d.Machines, m); ok {
		if d.Capacity[i] = d.load()[m]; d.Capacity[i] == 0 {
			d.Capacity[i] = -1
		}
	}
	d.separate()
	return d, d.remap()
}

// separate dissolves the groups whose regions do not have the same replicas.
func (c *Configuration) separate() {
	for _, g := range c.groups() {
		first := c.Regions[g[0]]
		if slices.ContainsFunc(g, func(i int) bool {
			return c.Regions[i].Primary != first.Primary || !slices.Equal(c.Regions[i].Backups, first.Backups)
		}) {
			c.dissolve(g)
		}
	}
}

func without(list []rdma.MachineID, m rdma.MachineID) []rdma.MachineID {
	list = slices.DeleteFunc(list, func(x rdma.MachineID) bool { return x == m })
	if len(list) == 0 {
		return nil
	}
	return list
}

// remap gives the regions of machines that are members no longer to others. It
// works on whole groups. First everything that has failed is dropped, then
// primaries are chosen, then backups, so that each choice sees the load.
func (c *Configuration) remap() Remapped {
	var report Remapped
	groups := c.groups()
	for _, g := range groups {
		report.Promoted = append(report.Promoted, c.survive(g)...)
	}
	for i := range c.Regions {
		if _, ok := c.Member(c.Regions[i].Primary); !ok {
			report.Lost = append(report.Lost, c.Regions[i].Region)
		}
	}
	c.lose(report.Lost)
	load := c.load()
	for _, g := range c.groups() {
		report.Refilled = append(report.Refilled, c.refill(g, load)...)
	}
	for i := range c.Regions {
		if len(c.Regions[i].Backups) < c.Replicas-1 {
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

// survive drops from the regions of a group the machines that are no members,
// and promotes a survivor if the primary is among them. A region of which no
// filled replica survives is left with a primary that is no member.
func (c *Configuration) survive(group []int) (promoted []region.ID) {
	gone := func(m rdma.MachineID) bool { _, ok := c.Member(m); return !ok }
	for _, i := range group {
		p := &c.Regions[i]
		if slices.ContainsFunc(p.Replicas(), gone) {
			p.LastReplicaChange = c.ID
		}
		p.Backups = slices.DeleteFunc(p.Backups, gone)
		if p.Filling = slices.DeleteFunc(p.Filling, gone); len(p.Filling) == 0 {
			p.Filling = nil
		}
	}
	if !gone(c.Regions[group[0]].Primary) {
		return nil
	}
	heir, together := c.heir(group)
	if !together {
		c.dissolve(group) // better scattered than lost
	}
	for _, i := range group {
		p := &c.Regions[i]
		if !together {
			var ok bool
			if heir, ok = c.heir([]int{i}); !ok {
				continue
			}
		}
		p.Primary = heir
		p.Backups = slices.DeleteFunc(p.Backups, func(m rdma.MachineID) bool { return m == heir })
		p.LastPrimaryChange = c.ID
		promoted = append(promoted, p.Region)
	}
	return promoted
}

// heir returns the backup of all regions of a group that is primary of the
// fewest regions; false if there is none that has them all.
func (c *Configuration) heir(group []int) (best rdma.MachineID, ok bool) {
	for _, m := range c.Regions[group[0]].Backups {
		whole := !slices.ContainsFunc(group, func(i int) bool {
			return !slices.Contains(c.Regions[i].Backups, m) || slices.Contains(c.Regions[i].Filling, m)
		})
		if whole && (!ok || c.PrimaryOf(m) < c.PrimaryOf(best)) {
			best, ok = m, true
		}
	}
	return best, ok
}

// lose takes regions out of the configuration.
func (c *Configuration) lose(lost []region.ID) {
	c.Regions = slices.DeleteFunc(c.Regions, func(p Placement) bool { return slices.Contains(lost, p.Region) })
	c.Lost = append(c.Lost, lost...)
	slices.Sort(c.Lost)
}

// refill gives the regions of a group as many backups as they should have, the
// same ones to all if a machine has room for all, and otherwise, one by one,
// what there is.
func (c *Configuration) refill(group []int, load map[rdma.MachineID]int) (refilled []region.ID) {
	for len(c.Regions[group[0]].Backups) < c.Replicas-1 {
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
	whole := true
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
