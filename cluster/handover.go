package cluster

import (
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Handover gives the role of the primary of a whole group to a machine that has complete backups of
// it. The former primary stays as a backup, so that nothing is copied. It takes one configuration,
// which recovers transactions as after a failure of the former primary, only that nobody is missing.
type Handover struct {
	Group    region.ID
	From, To rdma.MachineID
}

// CanHandOver reports whether all members know handovers. At a former primary, earlier programs leave
// lock bits in the memory.
func (c *Configuration) CanHandOver() bool { return c.Version() >= protocol.Handovers }

// NextHandovers returns the handovers that even out the primaries of the machines; none while replicas
// move or are being filled. They are all of one configuration: each interrupts commits for a moment,
// and nothing is copied that would take the longer the more there is.
//
// Each handover lowers the sum of the squares of the numbers of primaries, and moves none of the
// replicas. Moves come first, and lower the sum of the squares of the numbers of replicas. So both end.
func (c *Configuration) NextHandovers() (handovers []Handover) {
	if !c.CanHandOver() || !c.BeginsMoves() {
		return nil
	}
	for pl := newPlanner(c); ; {
		g, to, ok := pl.nextHandover()
		if !ok {
			return handovers
		}
		p := &c.Regions[g[0]]
		handovers = append(handovers, Handover{p.Group, p.Primary, to})
		pl.primaries[p.Primary] -= len(g)
		pl.primaries[to] += len(g)
		pl.together = slices.DeleteFunc(pl.together, func(x []int) bool { return x[0] == g[0] })
	}
}

// nextHandover returns the handover that lowers the cost the most, and is worth it. Primaries of machines
// that are being drained move away instead.
func (pl *planner) nextHandover() (group []int, to rdma.MachineID, ok bool) {
	low, lowest := pl.least(pl.primaries), 0
	for _, g := range pl.together {
		p := &pl.c.Regions[g[0]]
		has := pl.primaries[p.Primary]
		if pl.c.IsDraining(p.Primary) || !pl.isUneven(g, has-low, len(pl.c.Regions)) { // mostly
			continue
		}
		for _, b := range p.Backups {
			d := has - pl.primaries[b]
			if cost := len(g) * (len(g) - d); cost < lowest && !pl.c.IsDraining(b) && pl.isUneven(g, d, len(pl.c.Regions)) {
				group, to, lowest = g, b, cost
			}
		}
	}
	return group, to, group != nil
}

// HandOver returns the configuration after c in which the given handovers are done. NextHandovers has
// returned them for c.
func (c *Configuration) HandOver(handovers []Handover) (*Configuration, Remapped) {
	d := c.Succeed()
	var report Remapped
	for _, h := range handovers {
		for i := range d.Regions {
			p := &d.Regions[i]
			if p.Group != h.Group {
				continue
			}
			p.Backups[slices.Index(p.Backups, h.To)] = h.From
			p.Primary, p.LastPrimaryChange = h.To, d.ID
			report.HandedOver = append(report.HandedOver, p.Region)
		}
	}
	slices.Sort(report.HandedOver)
	return d, report
}
