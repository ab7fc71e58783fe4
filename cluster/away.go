package cluster

import (
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A region is lost only if the memory of all its replicas is lost (SOSP'15 section 5). The memory
// of machines that are away counts as intact until an operator says otherwise. When the last member
// that has all of a region leaves, the region becomes unavailable. It waits for the memory of any one
// machine that was a full replica then. One is enough, like one survivor of a failure: each of these
// memories, with its logs, has everything that was reported committed. The memory of a machine that
// left earlier is not enough if the others have gone on without the machine: see Follow.

// whole returns the memories of members with the whole region id; none if the region is
// unavailable.
func (c *Configuration) whole(id region.ID) []Memory {
	p, _ := c.Placement(id)
	var whole []Memory // stays empty if the region is unavailable
	for _, m := range p.Replicas() {
		if member, ok := c.Member(m); ok && !slices.Contains(p.Filling, m) {
			whole = append(whole, Memory{m, member.Memory, member.Incarnation})
		}
	}
	return whole
}

// Follow completes c, the successor of base, before c is stored. Replicas that have gone are no
// longer pinned, and regions that have been resized lose Had. For each region it records which
// memories have all of it although their machines are not full replicas in c: the memories that
// had all of it in base. If isUnused reports that no transaction can have committed to the
// region in base, the memories in base's Before have missed nothing, and are recorded too.
// Follow records them in Away if the region is unavailable, and otherwise in Before.
func (c *Configuration) Follow(base *Configuration, isUnused func(region.ID) bool) {
	c.endResize()
	for i := range c.Regions {
		p := &c.Regions[i]
		p.unpin()
		was, known := base.Placement(p.Region)
		if !known || (!p.IsAvailable() && !was.IsAvailable()) {
			continue // a new region, or one that stays unavailable: memories that were given up stay so
		}
		have := append(slices.Clone(was.Away), base.whole(p.Region)...)
		if isUnused(p.Region) {
			have = append(have, was.Before...)
		}
		p.Before = nil
		list := &p.Before
		if !p.IsAvailable() {
			list = &p.Away
		}
		for _, m := range have {
			if !slices.Contains(*list, m) && !c.hasMemory(m, p) {
				*list = append(*list, m)
			}
		}
	}
}

// hasMemory reports whether m is the memory of a full replica of p. If the region is unavailable,
// every memory of a member's machine counts: when the member came back, bringBack has already
// handled the machine's earlier memories.
func (c *Configuration) hasMemory(m Memory, p *Placement) bool {
	member, in := c.Member(m.Machine)
	isFull := p.Has(m.Machine) && !slices.Contains(p.Filling, m.Machine)
	return in && (!p.IsAvailable() || (isFull && member.Memory == m.Token))
}

// With returns the configuration after c that has m as an additional member. m's memory has
// replicas, complete or not, of the regions in holds. If such a region is unavailable and waits
// for that memory, it becomes available, with m as its primary. If m holds an older state of a
// region, m replaces a backup that is being filled from nothing, unless an operator has ordered
// that backup. If the region is to grow, m becomes an additional backup. m also gets replicas
// of regions that have too few.
func (c *Configuration) With(m Member, holds []region.ID) (*Configuration, Remapped) {
	d := c.Succeed()
	d.AddMember(m)
	d.forgetDrained()
	returned := d.bringBack(m, holds)
	replaced := d.replaceFilling(m.Machine, holds)
	d.separate()
	growing := d.growAgain(m.Machine, holds)
	report := d.remap(c)
	d.keep(m.Machine, holds)
	report.Returned, report.Growing = returned, growing
	report.Refilled = append(report.Refilled, replaced...)
	slices.Sort(report.Refilled)
	return d, report
}

// bringBack makes the regions available that wait for the memory with which m has come back. Other
// memories of the same machine are gone: a region stops waiting for them if it also waits for
// another machine; if not, only an operator can end the wait. If m's memory is an older copy, the
// region keeps waiting: the memory that the copy replaced may still exist.
func (c *Configuration) bringBack(m Member, holds []region.ID) (returned []region.ID) {
	for i := range c.Regions {
		p := &c.Regions[i]
		switch {
		case p.awaits(m) && slices.Contains(holds, p.Region):
			p.Away, p.Primary = nil, m.Machine
			p.LastPrimaryChange, p.LastReplicaChange = c.ID, c.ID
			for _, b := range slices.Clone(p.Backups) { // chosen beside others: none is complete
				if c.domain(b) == m.FailureDomain {
					p.dropBackup(b, c.ID)
				}
			}
			returned = append(returned, p.Region)
		case slices.ContainsFunc(p.Away, func(a Memory) bool { return a.Machine != m.Machine }):
			p.giveUp(func(a Memory) bool { return a.Machine == m.Machine && !a.isOlder(m) })
		}
	}
	return returned
}

// IsMember reports whether m's machine is a member of c with m's memory. The life that is the member
// must be m's own, or a life that can have left that memory behind.
func (c *Configuration) IsMember(m Member) bool {
	was, in := c.Member(m.Machine)
	return in && (was.Memory == 0 || was.Memory == m.Memory) && m.knows(was.Incarnation)
}

// awaits reports whether the region waits for the memory with which a machine has come back.
func (p *Placement) awaits(m Member) bool {
	return slices.ContainsFunc(p.Away, func(a Memory) bool { return a.matches(m) })
}

// giveUp removes from Away the memories for which isGone returns true: the region no longer waits for
// them. If others remain, the first becomes its Primary.
func (p *Placement) giveUp(isGone func(Memory) bool) {
	p.Away = slices.DeleteFunc(p.Away, isGone)
	if len(p.Away) > 0 {
		p.Primary = p.Away[0].Machine
	} else {
		p.Away = nil
	}
}

// keep notes in Kept which of the given regions are being filled at m: m holds an older state of them.
func (c *Configuration) keep(m rdma.MachineID, holds []region.ID) {
	for _, id := range holds {
		if i, ok := c.find(id); ok && slices.Contains(c.Regions[i].Filling, m) {
			c.Regions[i].Kept = append(c.Regions[i].Kept, m)
		}
	}
}

// replaceFilling makes m a backup of the given regions, in place of a backup that is being
// filled from nothing, if there is one. m holds an older state of these regions, so less has to
// be copied. The target of a move that an operator has ordered stays: the region has all its
// replicas without it, and the operator has been told that the replica moves there.
func (c *Configuration) replaceFilling(m rdma.MachineID, holds []region.ID) (replaced []region.ID) {
	if c.IsDraining(m) {
		return nil
	}
	load := c.load()
	for _, id := range holds {
		i, ok := c.find(id)
		if !ok || !c.Regions[i].IsAvailable() || c.Regions[i].Has(m) || !c.haveRoom(load, []rdma.MachineID{m}, 1) {
			continue
		}
		p := &c.Regions[i]
		k := slices.IndexFunc(p.Filling, func(x rdma.MachineID) bool {
			return !slices.Contains(p.Kept, x) && c.sparesDomain(p, m, x) && !(p.movesTo(x) && p.isPinned(x))
		})
		if k < 0 {
			continue
		}
		x := p.Filling[k]
		p.Backups[slices.Index(p.Backups, x)], p.Filling[k] = m, m
		p.LastReplicaChange = c.ID
		if p.Move != nil && p.Move.To == x {
			p.Move = &Move{p.Move.From, m}
		}
		load[x]--
		load[m]++
		replaced = append(replaced, id)
	}
	return replaced
}

// sparesDomain reports whether m shares no failure domain with any of p's replicas except x.
func (c *Configuration) sparesDomain(p *Placement, m, x rdma.MachineID) bool {
	return !slices.ContainsFunc(p.Replicas(), func(r rdma.MachineID) bool { return r != x && c.domain(r) == c.domain(m) })
}

// Awaited returns all unavailable regions that wait for a memory of machine m, and only the regions
// among them that wait for no other memory.
func (c *Configuration) Awaited(m rdma.MachineID) (all, only []region.ID) {
	for _, p := range c.Regions {
		if !slices.ContainsFunc(p.Away, func(a Memory) bool { return a.Machine == m }) {
			continue
		}
		all = append(all, p.Region)
		if !slices.ContainsFunc(p.Away, func(a Memory) bool { return a.Machine != m }) {
			only = append(only, p.Region)
		}
	}
	return all, only
}

// Unavailable returns the regions that have no complete replica at a member.
func (c *Configuration) Unavailable() (ids []region.ID) {
	for _, p := range c.Regions {
		if !p.IsAvailable() {
			ids = append(ids, p.Region)
		}
	}
	return ids
}

// IsOlder reports whether m has come back with a copy of its memory that is older than the memory
// it had as a member, as far as c knows.
func (c *Configuration) IsOlder(m Member) bool {
	if was, in := c.Member(m.Machine); in && (Memory{was.Machine, was.Memory, was.Incarnation}).isOlder(m) {
		return true
	}
	return slices.ContainsFunc(c.Regions, func(p Placement) bool {
		return slices.ContainsFunc(p.Away, func(a Memory) bool { return a.isOlder(m) }) && !p.awaits(m)
	})
}

// Missing returns the regions that would be lost, perhaps needlessly, if m became a member with a
// memory that holds the given regions. Such a region waits for another memory of m's machine, or for
// m's memory, which does not hold it. A region that waits for other machines as well counts only if
// m's memory is an older copy: the newer memory may still exist.
func (c *Configuration) Missing(m Member, holds []region.ID) []region.ID {
	all, only := c.Awaited(m.Machine)
	return slices.DeleteFunc(all, func(id region.ID) bool {
		p, _ := c.Placement(id)
		isBack := p.awaits(m) && slices.Contains(holds, id)
		isOlder := slices.ContainsFunc(p.Away, func(a Memory) bool { return a.isOlder(m) })
		waitsForOthers := !slices.Contains(only, id)
		return isBack || (waitsForOthers && !isOlder)
	})
}

// Forget returns the configuration after c in which no region waits for a memory of
// machine m. Regions that wait for nothing else are lost.
func (c *Configuration) Forget(m rdma.MachineID) (*Configuration, Remapped) {
	_, lost := c.Awaited(m)
	d := c.Succeed()
	for i := range d.Regions {
		d.Regions[i].giveUp(func(a Memory) bool { return a.Machine == m })
	}
	d.Regions = slices.DeleteFunc(d.Regions, func(p Placement) bool { return slices.Contains(lost, p.Region) })
	d.Lost = append(d.Lost, lost...)
	slices.Sort(d.Lost)
	return d, Remapped{Lost: lost}
}
