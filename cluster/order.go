package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// An Order is the move of a replica that an operator asks for. The other regions of the group
// move along. It is carried out like any move. Afterwards the replica is pinned: balance leaves
// it where the operator has put it, and moves other replicas to even out the machines.
type Order struct {
	Region region.ID
	Move
}

// ErrCannotMove means that an order must not be carried out.
var ErrCannotMove = errors.New("cluster: the region cannot be moved")

// IsGranted reports whether the replica moves, or has moved, by an order.
func (c *Configuration) IsGranted(o Order) bool {
	p, ok := c.Placement(o.Region)
	return ok && p.isPinned(o.To) && p.Has(o.To) && (!p.Has(o.From) || p.moves(&o.Move))
}

// CheckOrder fails with ErrCannotMove if an order cannot be carried out, and says what to do
// about it. While a region moves, CheckOrder does not refuse an order because of where the
// replicas are: the order waits, and is checked again when the region has moved.
func (c *Configuration) CheckOrder(o Order) error {
	if err := c.refuses(o); err != nil {
		return fmt.Errorf("%w: %w", ErrCannotMove, err)
	}
	return nil
}

// refuses returns why an order cannot be carried out.
func (c *Configuration) refuses(o Order) error {
	i, ok := c.find(o.Region)
	switch {
	case !c.CanMove():
		return fmt.Errorf("the machines speak version %d of the protocol, and version %d is needed: start those of older programs with this one", c.Version(), protocol.Moves)
	case slices.Contains(c.Lost, o.Region):
		return fmt.Errorf("region %d is lost: restore a save to have it again", o.Region)
	case !ok:
		return fmt.Errorf("configuration %d has no region %d: name one that farmsql status shows", c.ID, o.Region)
	}
	p := &c.Regions[i]
	_, isMember := c.Member(o.To)
	switch {
	case !p.IsAvailable():
		return fmt.Errorf("region %d is unavailable until one of its memories is back: start one of the machines that farmsql status names", o.Region)
	case !isMember:
		return fmt.Errorf("machine %d is no member of configuration %d: start it, or name another machine", o.To, c.ID)
	case c.IsDraining(o.To):
		return fmt.Errorf("machine %d is being drained: take that back first, or name another machine", o.To)
	case p.Move != nil:
		return nil
	case !p.Has(o.From):
		return fmt.Errorf("machine %d has no replica of region %d: move one from machine %v", o.From, o.Region, oneOf(p.Replicas()))
	case p.Has(o.To):
		return fmt.Errorf("machine %d has a replica of region %d already: name another machine", o.To, o.Region)
	}
	return c.refusesGroup(o, c.groupOf(i))
}

// refusesGroup returns why the group of an order's region cannot move as the order says.
func (c *Configuration) refusesGroup(o Order, group []int) error {
	p := &c.Regions[group[0]]
	if !c.isComplete(group) {
		return fmt.Errorf("region %d has %d of %d replicas, and moves only when it has all: add a machine, or make room at one", o.Region, len(p.Replicas()), c.Least(p))
	}
	for _, r := range p.Replicas() {
		if r != o.From && c.domain(r) == c.domain(o.To) {
			return fmt.Errorf("machine %d is in the failure domain of machine %d, which has another replica of region %d: name a machine of another domain", o.To, r, o.Region)
		}
	}
	if !c.haveRoom(c.load(), []rdma.MachineID{o.To}, len(group)) {
		return fmt.Errorf("machine %d has no room for regions %v, which stay together: make room there, or name another machine", o.To, c.regionsOf(group))
	}
	if m, ok := c.hindersDrain(group, o.Move); ok {
		return fmt.Errorf("machine %d has room only for what is at machine %d, which is being drained: take that back first, or name another machine", o.To, m)
	}
	return nil
}

// hindersDrain returns a machine that is being drained, if all its replicas have a place to go
// to without the given move, but not after it; false if there is none.
func (c *Configuration) hindersDrain(group []int, move Move) (rdma.MachineID, bool) {
	if len(c.Draining) == 0 {
		return 0, false // the usual case
	}
	d := c.Clone()
	newPlanner(d).carryOut(group, move)
	return c.losesPlaces(d)
}

// losesPlaces returns a machine that is being drained, if all its replicas have a place to go
// to in c, but not in d; false if there is none.
func (c *Configuration) losesPlaces(d *Configuration) (rdma.MachineID, bool) {
	for _, m := range c.Machines {
		if c.IsDraining(m) && c.CheckDrain(m) == nil && d.CheckDrain(m) != nil {
			return m, true
		}
	}
	return 0, false
}

// oneOf lists machines for a person to choose from.
func oneOf(machines []rdma.MachineID) (text string) {
	for i, m := range machines {
		switch {
		case i > 0 && i == len(machines)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += fmt.Sprint(m)
	}
	return text
}

// groupOf returns the indices of the regions in the group of Regions[i].
func (c *Configuration) groupOf(i int) (group []int) {
	for k := range c.Regions {
		if c.Regions[k].Group == c.Regions[i].Group {
			group = append(group, k)
		}
	}
	return group
}

// Obey returns the configuration after c in which an order is being carried out. If other moves are
// under way, or replicas are being filled, it fails: see BeginsMoves. If From was pinned, it stays so
// until the replica leaves it, in case the move fails. Errors: ErrCannotMove.
func (c *Configuration) Obey(o Order) (*Configuration, Remapped, error) {
	if err := c.CheckOrder(o); err != nil {
		return nil, Remapped{}, err
	}
	if !c.BeginsMoves() {
		return nil, Remapped{}, fmt.Errorf("%w before %s", ErrCannotMove, c.StandsStill())
	}
	p, _ := c.Placement(o.Region)
	d, report := c.StartMoves([]GroupMove{{p.Group, o.Move}})
	for _, id := range report.Moving {
		i, _ := d.find(id)
		d.Regions[i].Pinned = append(d.Regions[i].Pinned, o.To)
	}
	return d, report, nil
}

// isPinned reports whether an operator has put the replica at m.
func (p *Placement) isPinned(m rdma.MachineID) bool { return slices.Contains(p.Pinned, m) }

// isPinned reports whether an operator has put a group's replica at m. A region that an earlier program
// has placed beside the others is not pinned itself.
func (c *Configuration) isPinned(group []int, m rdma.MachineID) bool {
	return slices.ContainsFunc(group, func(i int) bool { return c.Regions[i].isPinned(m) })
}

// unpin forgets what an operator has put at machines that have no replica any more.
func (p *Placement) unpin() {
	p.Pinned = slices.DeleteFunc(p.Pinned, func(m rdma.MachineID) bool { return !p.Has(m) })
	if len(p.Pinned) == 0 {
		p.Pinned = nil
	}
}
