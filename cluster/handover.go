package cluster

import (
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Handover gives the role of the primary of a whole group to a machine that has complete
// backups of it. The former primary stays as a backup, so that nothing is copied. It takes one
// configuration, which recovers transactions as after a failure of the former primary, although
// nobody is missing.
type Handover struct {
	Group    region.ID
	From, To rdma.MachineID
}

// CanHandOver reports whether all members know handovers. At a former primary, earlier programs leave
// lock bits in the memory.
func (c *Configuration) CanHandOver() bool { return c.Version() >= protocol.Handovers }

// NextHandovers returns the handovers that even out the primaries of the machines; none while
// replicas move or are being filled. One configuration makes all of them: each configuration
// interrupts commits for a moment, and more handovers take no longer, since nothing is copied.
// They begin only if machines are uneven enough (isUneven), but then go on as long as any of
// them lowers the cost: otherwise one or two more regions would make the machines too uneven
// again.
//
// Each path (chains.go) lowers the sum of the squares of the numbers of primaries, and moves none of the
// replicas. Moves come first, and lower the sum of the squares of the numbers of replicas. So both end.
func (c *Configuration) NextHandovers() []Handover {
	if !c.CanHandOver() || !c.BeginsMoves() {
		return nil
	}
	ch := newPlanner(c).chains()
	for path := ch.next(len(c.Regions)); path != nil; path = ch.next(0) {
		ch.take(path)
	}
	return ch.handovers()
}

// HandOver returns the configuration after c in which the given handovers are done. NextHandovers has
// returned them for c.
func (c *Configuration) HandOver(handovers []Handover) (*Configuration, Remapped) {
	d := c.Succeed()
	var report Remapped
	byGroup := make(map[region.ID]Handover, len(handovers))
	for _, h := range handovers {
		byGroup[h.Group] = h
	}
	for i := range d.Regions {
		p := &d.Regions[i]
		h, ok := byGroup[p.Group]
		if !ok {
			continue
		}
		p.Backups[slices.Index(p.Backups, h.To)] = h.From
		p.Primary, p.LastPrimaryChange = h.To, d.ID
		report.HandedOver = append(report.HandedOver, p.Region)
	}
	slices.Sort(report.HandedOver)
	return d, report
}

// HandsOver reports whether c, which comes after was, has made a primary of was a backup.
func (c *Configuration) HandsOver(was *Configuration) bool {
	return slices.ContainsFunc(c.Regions, func(p Placement) bool {
		before, ok := was.Placement(p.Region)
		return ok && before.IsAvailable() && p.Primary != before.Primary && slices.Contains(p.Backups, before.Primary)
	})
}
