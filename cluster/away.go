package cluster

import (
	"slices"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A region is lost only with the memory of all its replicas (SOSP'15 section 5).
// Machines that are away have not lost theirs as long as nobody says so: when the
// last one leaves that has all of a region, the region becomes unavailable, and waits
// for the memory of one that was a full replica then. Any of them will do, as any
// survivor of a failure would: whatever was reported committed, each of them has, or
// its logs have. One that had left before will not, if the others have gone on without it: see Follow.

// whole returns the memories of the members that have all of an available region.
func (c *Configuration) whole(id region.ID) []Memory {
	p, _ := c.Placement(id)
	var whole []Memory // none of a region that is unavailable
	for _, m := range p.Replicas() {
		if member, ok := c.Member(m); ok && !slices.Contains(p.Filling, m) {
			whole = append(whole, Memory{m, member.Memory, member.Incarnation})
		}
	}
	return whole
}

// Follow completes c, which follows base and is not anybody's yet, with the memories that
// have all of a region without being full replicas: those that had all of it in base, and,
// if isUnused says that no transaction can have committed to it in base, those of before
// then. A region that becomes unavailable waits for them, too: whoever was left out since a
// transaction can have committed has missed nothing.
func (c *Configuration) Follow(base *Configuration, isUnused func(region.ID) bool) {
	for i := range c.Regions {
		p := &c.Regions[i]
		was, known := base.Placement(p.Region)
		if !known || !p.IsAvailable() && !was.IsAvailable() {
			continue // what an operator has given up stays so
		}
		have := append(slices.Clone(was.Away), base.whole(p.Region)...)
		if isUnused(p.Region) {
			have = append(have, was.Before...)
		}
		p.Before = nil
		rest := &p.Before
		if !p.IsAvailable() {
			rest = &p.Away
		}
		for _, m := range have {
			if !slices.Contains(*rest, m) && !c.hasMemory(m, p) {
				*rest = append(*rest, m)
			}
		}
	}
}

// hasMemory says whether a memory is that of a full replica, or, if the region is
// unavailable, of any member: with whatever a member has come back, bringBack has said
// what becomes of what it had before.
func (c *Configuration) hasMemory(m Memory, p *Placement) bool {
	member, in := c.Member(m.Machine)
	isFull := p.Has(m.Machine) && !slices.Contains(p.Filling, m.Machine)
	return in && (!p.IsAvailable() || isFull && member.Memory == m.Token)
}

// With returns the configuration after c in which m is a member too, which it must
// not have been, and whose memory holds the given regions, in some state. Unavailable
// regions among them that wait for that memory are available again, with m as their
// primary. It gets replicas that regions are short of, and replaces backups that are
// being filled with what it holds an older state of.
func (c *Configuration) With(m Member, holds []region.ID) (*Configuration, Remapped) {
	d := c.Succeed()
	d.AddMember(m)
	returned := d.bringBack(m, holds)
	replaced := d.replaceFilling(m.Machine, holds)
	d.separate()
	report := d.remap(c)
	d.keep(m.Machine, holds)
	report.Returned = returned
	report.Refilled = append(report.Refilled, replaced...)
	slices.Sort(report.Refilled)
	return d, report
}

// bringBack makes the regions available that wait for a memory, which a member has come
// back with. Other memories of the same machine are gone: a region stops waiting for them if it
// waits for another machine as well, and otherwise when an operator says so. Not so where this
// is an older copy, for who has put that in the place of the memory has it still.
func (c *Configuration) bringBack(m Member, holds []region.ID) (returned []region.ID) {
	for i := range c.Regions {
		p := &c.Regions[i]
		switch {
		case p.awaits(m) && slices.Contains(holds, p.Region):
			p.Away, p.Primary = nil, m.Machine
			p.LastPrimaryChange, p.LastReplicaChange = c.ID, c.ID
			returned = append(returned, p.Region)
		case slices.ContainsFunc(p.Away, func(a Memory) bool { return a.Machine != m.Machine }):
			p.giveUp(func(a Memory) bool { return a.Machine == m.Machine && !a.isOlder(m) })
		}
	}
	return returned
}

// IsMember says whether m is a member, or has come back with the memory that a life of it
// had which is.
func (c *Configuration) IsMember(m Member) bool {
	was, in := c.Member(m.Machine)
	return in && (was.Memory == 0 || was.Memory == m.Memory) && m.knows(was.Incarnation)
}

// awaits says whether the region waits for the memory that a machine comes back with.
func (p *Placement) awaits(m Member) bool {
	return slices.ContainsFunc(p.Away, func(a Memory) bool { return a.matches(m) })
}

// giveUp has the region wait no longer for some memories.
func (p *Placement) giveUp(is func(Memory) bool) {
	p.Away = slices.DeleteFunc(p.Away, is)
	if len(p.Away) > 0 {
		p.Primary = p.Away[0].Machine
	} else {
		p.Away = nil
	}
}

// keep notes that m holds an older state of regions.
func (c *Configuration) keep(m rdma.MachineID, holds []region.ID) {
	for _, id := range holds {
		if i, ok := c.find(id); ok && slices.Contains(c.Regions[i].Filling, m) {
			c.Regions[i].Kept = append(c.Regions[i].Kept, m)
		}
	}
}

// replaceFilling makes m, which holds an older state of regions, a backup of them in
// place of one that is being filled and holds none: there is less to be copied.
func (c *Configuration) replaceFilling(m rdma.MachineID, holds []region.ID) (replaced []region.ID) {
	load := c.load()
	for _, id := range holds {
		i, ok := c.find(id)
		if !ok || !c.Regions[i].IsAvailable() || c.Regions[i].Has(m) || !c.haveRoom(load, []rdma.MachineID{m}, 1) {
			continue
		}
		p := &c.Regions[i]
		k := slices.IndexFunc(p.Filling, func(x rdma.MachineID) bool { return !slices.Contains(p.Kept, x) && c.sparesDomain(p, m, x) })
		if k < 0 {
			continue
		}
		x := p.Filling[k]
		p.Backups[slices.Index(p.Backups, x)], p.Filling[k] = m, m
		p.LastReplicaChange = c.ID
		load[x]--
		load[m]++
		replaced = append(replaced, id)
	}
	return replaced
}

// sparesDomain says whether m shares no failure domain with p's replicas but x.
func (c *Configuration) sparesDomain(p *Placement, m, x rdma.MachineID) bool {
	return !slices.ContainsFunc(p.Replicas(), func(r rdma.MachineID) bool { return r != x && c.domain(r) == c.domain(m) })
}

// Awaited returns the unavailable regions that wait for memories of machine m, and of
// these the ones that wait for nothing else.
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

// Unavailable returns the regions of which no member has everything.
func (c *Configuration) Unavailable() (ids []region.ID) {
	for _, p := range c.Regions {
		if !p.IsAvailable() {
			ids = append(ids, p.Region)
		}
	}
	return ids
}

// IsOlder says whether m comes back with a copy of its memory that is older than what it
// had when it was a member last, as far as c knows.
func (c *Configuration) IsOlder(m Member) bool {
	if was, in := c.Member(m.Machine); in && (Memory{was.Machine, was.Memory, was.Incarnation}).isOlder(m) {
		return true
	}
	return slices.ContainsFunc(c.Regions, func(p Placement) bool {
		return slices.ContainsFunc(p.Away, func(a Memory) bool { return a.isOlder(m) }) && !p.awaits(m)
	})
}

// Missing returns the regions that would be lost, or might be for no need, if m became a
// member with a memory that holds the given ones: they wait for a memory of that machine, and
// this is not the one, or does not have them. If they wait for other machines as well,
// that matters only of an older copy: who has put that in the place of the memory has it still.
func (c *Configuration) Missing(m Member, holds []region.ID) []region.ID {
	all, only := c.Awaited(m.Machine)
	return slices.DeleteFunc(all, func(id region.ID) bool {
		p, _ := c.Placement(id)
		isOlder := slices.ContainsFunc(p.Away, func(a Memory) bool { return a.isOlder(m) })
		return p.awaits(m) && slices.Contains(holds, id) || !isOlder && !slices.Contains(only, id)
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
