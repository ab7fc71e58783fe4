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

// The number of replicas changes while the instance runs. Replicas is the new number as soon as
// Resize has noted it. Until a region is resized, its Placement.Had is the number that it had
// before:
//
//	growing    ResizeOn adds backups to a few groups at once, which are filled like any others. When all of a
//	           group is filled, the next configuration, which mostly adds the next backups, sets Had to 0.
//	           Until then the region needs no more replicas than it had: the new backup may be refused,
//	           or fail, and nothing is missing. If its machine comes back, it goes on with what it has copied.
//	shrinking  ResizeOn takes backups from all groups in one configuration: nothing has to be filled, and
//	           each configuration interrupts commits. No primary leaves: promoting a backup would
//	           recover its transactions for nothing.
//
// Both wait until nothing moves or is filled, as moves do. Growing does not wait for regions
// that are unavailable: while machines are away, further replicas are wanted most.

// ErrCannotResize means that regions cannot have the number of replicas that is asked for.
var ErrCannotResize = errors.New("cluster: the number of replicas cannot change")

// CanResize reports whether all members know that regions may have different numbers of replicas.
func (c *Configuration) CanResize() bool { return c.Version() >= protocol.Resizes }

// Least returns the number of replicas below which a region of c gets further ones. While the
// region is not resized, that is the number that it had or the number that it should have,
// whichever is less.
func (c *Configuration) Least(p *Placement) int {
	if p.Had == 0 {
		return c.Replicas
	}
	return min(p.Had, c.Replicas)
}

// most returns how many replicas a region of c may have, unless one moves.
func (c *Configuration) most(p *Placement) int { return max(p.Had, c.Replicas) }

// NeedsFilling reports whether region p has fewer complete replicas than Least. If not, the
// region moves or grows, or is to shrink once nothing is being filled: then a replica that is
// being filled is in no hurry, and can be given up.
func (c *Configuration) NeedsFilling(p *Placement) bool {
	return !p.IsAvailable() || len(p.Replicas())-len(p.Filling) < c.Least(p)
}

// fewest returns how many replicas a new region needs. While other regions wait for room to
// grow, tables must grow all the same.
func (c *Configuration) fewest() int {
	n := c.Replicas
	for i := range c.Regions {
		n = min(n, c.Least(&c.Regions[i]))
	}
	return n
}

// Resizing returns the regions that do not have the number of replicas yet that Resize has noted.
func (c *Configuration) Resizing() (ids []region.ID) {
	for i := range c.Regions {
		if c.Regions[i].Had != 0 {
			ids = append(ids, c.Regions[i].Region)
		}
	}
	return ids
}

// Resize returns the configuration after c whose regions are to have n replicas, or c if they
// are to have n already. ResizeOn then adds or removes replicas. It fails with ErrCannotResize
// if there is no place for the new replicas. It also fails if these would take the last place
// for replicas of a machine that is being drained.
func (c *Configuration) Resize(n int) (*Configuration, error) {
	switch {
	case n < 1:
		return nil, fmt.Errorf("%w: %d replicas are none: give a number from 1 on", ErrCannotResize, n)
	case !c.CanResize():
		return nil, fmt.Errorf("%w: the machines speak version %d of the protocol, and version %d is needed: start those of older programs with this one",
			ErrCannotResize, c.Version(), protocol.Resizes)
	case n == c.Replicas:
		return c, nil
	case n > c.Replicas && c.domains() < n:
		return nil, c.tooFewDomains(n)
	}
	d := c.Succeed()
	d.Replicas = n
	for _, g := range d.groups() {
		d.noteHad(g, c.Replicas)
	}
	d.endResize()
	grows := func(p Placement) bool { return p.Had != 0 && p.Had < n } // even if fewer replicas are wanted than just before
	if !slices.ContainsFunc(d.Regions, grows) {
		return d, nil
	}
	if err := d.CheckResize(); err != nil {
		return nil, err
	}
	if m, ok := c.losesPlaces(d); ok {
		return nil, fmt.Errorf("%w: with %d replicas of all regions no place is left for what is at machine %d, which is being drained: take that back first, or add a machine",
			ErrCannotResize, n, m)
	}
	return d, nil
}

// noteHad sets Had in the regions of a group, when the number of replicas that they should have
// changes from before to c.Replicas. If a region has more replicas than it should have now, Had
// counts those that are being filled, too: they are filled before any replica leaves. If the
// number rises, Had counts only replicas that are complete in the whole group, but not fewer
// than before. So replicas that are being filled can be refused. Regions with fewer replicas
// grow, too: nothing was added for machines that came while fewer replicas were wanted.
func (c *Configuration) noteHad(group []int, before int) {
	replicas := func(i int) int { // of region i, once its move has ended
		p := &c.Regions[i]
		if p.Move != nil {
			return len(p.Backups)
		}
		return len(p.Backups) + 1
	}
	complete := replicas(group[0])
	for _, i := range group {
		p := &c.Regions[i]
		complete = min(complete, replicas(i), len(p.Replicas())-len(p.Filling))
	}
	for _, i := range group {
		p := &c.Regions[i]
		p.Had = cmp.Or(p.Had, before)
		switch {
		case replicas(i) > c.Replicas:
			p.Had = max(p.Had, replicas(i))
		case c.Replicas > before:
			p.Had = min(p.Had, max(before, complete))
		}
	}
}

func (c *Configuration) tooFewDomains(n int) error {
	return fmt.Errorf("%w: the machines that take regions are in %d failure domains, and %d replicas need as many: start machines that are away, or add some, first",
		ErrCannotResize, c.domains(), n)
}

// CheckResize fails with ErrCannotResize if there is no place for the replicas that regions are
// to get; the error says what is missing. CheckResize adds all of them in a copy of c, since
// each takes room from the next.
func (c *Configuration) CheckResize() error {
	d := c.Clone()
	short := d.resizeAll()
	switch {
	case short == nil:
		return nil
	case c.domains() < c.Replicas:
		return c.tooFewDomains(c.Replicas)
	}
	return fmt.Errorf("%w: no machine has room for %d more regions, or all of those are in the failure domains of their other replicas: regions %v, which are to have %d replicas: make room, or add a machine",
		ErrCannotResize, len(short), d.regionsOf(short), c.Replicas)
}

// resizeAll resizes all regions at once, except unavailable ones. It returns a group without a
// place for one more replica, if there is one. It changes c itself, which belongs to the
// caller.
func (c *Configuration) resizeAll() (short []int) {
	load := c.load()
	c.shrinkAll(load)
	for _, g := range c.groups() {
		p := &c.Regions[g[0]]
		if p.Had == 0 || !p.IsAvailable() {
			continue
		}
		if c.grow(g, load); len(p.Replicas()) < c.Replicas && short == nil {
			short = g
		}
	}
	return short
}

// ResizeOn returns the configuration after c in which regions lose replicas, or else some get
// more, as Resize has noted. Regions that are resized by now lose Had. It is a configuration,
// and not a revision, so that all members know how far the resize is. ResizeOn returns nil if
// there is nothing to do, something stands in the way (BeginsMoves, mayGrow), or no machine has
// room (CheckResize).
func (c *Configuration) ResizeOn() (*Configuration, Remapped) {
	isWanted := c.CanResize() && len(c.Resizing()) > 0 // mostly false
	shrinks := c.BeginsMoves() || sabotage.ShrinkFilled.Skipped()
	if !isWanted || (!shrinks && !c.mayGrow()) {
		return nil, Remapped{}
	}
	d, load := c.Succeed(), c.load()
	report := Remapped{Grown: d.endResize()}
	if shrinks {
		report.Shrunk = d.shrinkAll(load)
	}
	if len(report.Shrunk) == 0 {
		report.Growing = d.growSome(load)
	}
	if len(report.Grown)+len(report.Shrunk)+len(report.Growing) == 0 {
		return nil, report
	}
	return d, report
}

// mayGrow reports whether no available region moves or is being filled.
func (c *Configuration) mayGrow() bool {
	return !slices.ContainsFunc(c.Regions, func(p Placement) bool { return p.IsAvailable() && p.isBusy() })
}

// shrinkAll takes replicas from the regions that have too many, and returns these regions.
func (c *Configuration) shrinkAll(load map[rdma.MachineID]int) (shrunk []region.ID) {
	c.separate()
	for _, g := range c.groups() {
		p := &c.Regions[g[0]]
		if p.Had <= c.Replicas || p.Move != nil || !p.IsAvailable() {
			continue
		}
		for len(p.Replicas()) > c.Replicas {
			m := c.leaver(g, load)
			for _, i := range g {
				c.Regions[i].dropBackup(m, c.ID)
			}
			load[m] -= len(g)
		}
		shrunk = append(shrunk, c.regionsOf(g)...)
	}
	slices.Sort(shrunk)
	return shrunk
}

// leaver returns the machine that loses its backup of a group: one that is being drained, or else the one with
// the most replicas, and one at which an operator has put the backup only if there is no other.
func (c *Configuration) leaver(group []int, load map[rdma.MachineID]int) rdma.MachineID {
	rank := func(m rdma.MachineID) int {
		switch {
		case c.IsDraining(m):
			return 2
		case !c.isPinned(group, m):
			return 1
		}
		return 0
	}
	return slices.MaxFunc(c.Regions[group[0]].Backups, func(a, b rdma.MachineID) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return load[a] - load[b]
	})
}

// growSome adds backups to as many regions as are filled at once, and returns these regions.
func (c *Configuration) growSome(load map[rdma.MachineID]int) (growing []region.ID) {
	for _, g := range c.groups() {
		isTooMany := len(growing) > 0 && len(growing)+len(g) > regionsAtOnce
		if p := &c.Regions[g[0]]; p.Had != 0 && p.IsAvailable() && !isTooMany && c.grow(g, load) {
			growing = append(growing, c.regionsOf(g)...)
		}
	}
	slices.Sort(growing)
	return growing
}

// grow adds backups to the regions of a group until they have what they should, or no machine has room for all
// of them. It reports whether it has added any.
func (c *Configuration) grow(group []int, load map[rdma.MachineID]int) (hasGrown bool) {
	for p := &c.Regions[group[0]]; len(p.Replicas()) < c.Replicas; hasGrown = true {
		m, ok := c.pickReplica(p.Replicas(), load, len(group))
		if !ok {
			return hasGrown
		}
		for _, i := range group {
			c.addBackup(i, m, load)
		}
	}
	return hasGrown
}

// growAgain makes machine m, which has come back, a backup of groups that are to grow, if its
// memory has all regions of the group: when m went away, the group had grown at m, or was about
// to. There is less to copy there than elsewhere, or nothing.
func (c *Configuration) growAgain(m rdma.MachineID, holds []region.ID) (growing []region.ID) {
	isMissing := func(i int) bool { return !slices.Contains(holds, c.Regions[i].Region) }
	load := c.load()
	for _, g := range c.groups() {
		p := &c.Regions[g[0]]
		isShort := p.Had != 0 && p.IsAvailable() && p.Move == nil && len(p.Replicas()) < c.Replicas && !p.Has(m)
		if !isShort || c.IsDraining(m) || slices.ContainsFunc(g, isMissing) {
			continue
		}
		if !c.sparesDomain(p, m, m) || !c.haveRoom(load, []rdma.MachineID{m}, len(g)) {
			continue
		}
		for _, i := range g {
			c.addBackup(i, m, load)
		}
		growing = append(growing, c.regionsOf(g)...)
	}
	slices.Sort(growing)
	return growing
}

// endResize makes the regions that are resized by now lose Had, and returns them. It does so
// for whole groups, so that their regions stay alike.
func (c *Configuration) endResize() (resized []region.ID) {
	if len(c.Resizing()) == 0 {
		return nil // the usual case
	}
	for _, g := range c.groups() {
		isResizing := func(i int) bool { return c.Regions[i].Had != 0 }
		isUndone := func(i int) bool { return !c.isResized(&c.Regions[i]) }
		if !slices.ContainsFunc(g, isResizing) || slices.ContainsFunc(g, isUndone) {
			continue
		}
		for _, i := range g {
			c.Regions[i].Had = 0
		}
		resized = append(resized, c.regionsOf(g)...)
	}
	slices.Sort(resized)
	return resized
}

// isResized reports whether a region has the number of replicas that it should have. A region
// that had at least that number and has lost replicas since counts, too: it gets replicas like
// any other region with too few.
func (c *Configuration) isResized(p *Placement) bool {
	n := len(p.Replicas())
	isFew := n < c.Replicas && p.Had >= c.Replicas
	return p.IsAvailable() && p.Move == nil && len(p.Filling) == 0 && (n == c.Replicas || isFew)
}

// refusesGrowth reports whether m may give up its backup of a region that is being resized:
// without m, at least Least replicas are complete.
func (c *Configuration) refusesGrowth(p *Placement, m rdma.MachineID) bool {
	others := len(p.Replicas()) - len(p.Filling)
	if !slices.Contains(p.Filling, m) {
		others--
	}
	return p.Had != 0 && p.IsAvailable() && p.Move == nil && slices.Contains(p.Backups, m) && others >= c.Least(p)
}
