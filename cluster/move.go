package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A replica moves from one machine to another in two configurations:
//
//	StartMoves  The target becomes one more backup, which is filled. The region has one replica
//	            more than it should; no replica leaves yet, so nothing is lost if the target fails.
//	EndMoves    The target has everything, so the other replica leaves. If that was the primary,
//	            the target takes its place in the same configuration: then the outcome of a move
//	            is known before it begins.
//
// All regions of a group move together, so that they stay co-located. If one of a moving
// region's machines fails in between, the move is over. The configuration without that machine
// leaves the region with as many replicas as it should have: see endBrokenMoves.

// A Move is the move of a replica. It is never changed, only replaced.
type Move struct {
	// From has a complete replica, which leaves when the one at To is complete.
	From, To rdma.MachineID
}

func (m *Move) String() string {
	if m == nil {
		return "no move"
	}
	return fmt.Sprintf("from machine %d to machine %d", m.From, m.To)
}

// A GroupMove is the move of a whole group.
type GroupMove struct {
	Group region.ID
	Move
}

// ErrCannotDrain means that a machine cannot be without replicas.
var ErrCannotDrain = errors.New("cluster: the machine cannot be drained")

// CanMove reports whether all members know moves. Earlier programs refuse a configuration in which
// a region has more replicas than it should.
func (c *Configuration) CanMove() bool { return c.Version() >= protocol.Moves }

// StartMoves returns the configuration after c in which the given moves are under way. NextMoves has
// returned them for c.
func (c *Configuration) StartMoves(moves []GroupMove) (*Configuration, Remapped) {
	d := c.Succeed()
	load := d.load()
	var report Remapped
	for _, g := range moves {
		for i := range d.Regions {
			if d.Regions[i].Group == g.Group {
				d.addBackup(i, g.To, load)
				d.Regions[i].Move = &Move{g.From, g.To}
				report.Moving = append(report.Moving, d.Regions[i].Region)
			}
		}
	}
	slices.Sort(report.Moving)
	return d, report
}

// EndMoves returns the configuration after c in which the moves have ended whose whole group is
// filled. It returns nil if there are none.
func (c *Configuration) EndMoves() (*Configuration, Remapped) {
	var report Remapped
	if !slices.ContainsFunc(c.Regions, func(p Placement) bool { return p.Move != nil }) {
		return nil, report // the usual case
	}
	var d *Configuration
	for _, g := range c.groups() {
		if !c.isFilledMove(g) {
			continue
		}
		if d == nil {
			d = c.Succeed()
		}
		for _, i := range g {
			p := &d.Regions[i]
			if p.Primary == p.Move.From {
				report.Promoted = append(report.Promoted, p.Region)
			}
			p.leave(d.ID)
			report.Moved = append(report.Moved, p.Region)
		}
	}
	slices.Sort(report.Promoted)
	slices.Sort(report.Moved)
	return d, report
}

// isFilledMove reports whether a group moves, and all its replicas are complete at the target.
// Others may be filled there as well: as long as one is, none leaves.
func (c *Configuration) isFilledMove(group []int) bool {
	return !slices.ContainsFunc(group, func(i int) bool {
		p := &c.Regions[i]
		return p.Move == nil || !p.IsAvailable() || (len(p.Filling) > 0 && !sabotage.MoveFilled.Skipped())
	})
}

// leave removes the replica that moves away. If that was the primary, the target takes its
// place, so that NextMoves can tell whether the move is worth it.
func (p *Placement) leave(in ID) {
	if p.Primary == p.Move.From {
		p.Primary, p.LastPrimaryChange = p.Move.To, in
		p.Backups = slices.DeleteFunc(p.Backups, func(m rdma.MachineID) bool { return m == p.Primary })
	} else {
		p.Backups = slices.DeleteFunc(p.Backups, func(m rdma.MachineID) bool { return m == p.Move.From })
	}
	p.Move, p.LastReplicaChange = nil, in
}

// endBrokenMoves ends the moves of regions that have lost one of the replicas that they had in
// the configuration before. The replicas that are left stay, the target included: the region
// needs it now. But of the target and the replica that it was to replace one goes if they share
// a failure domain, or if there are still too many replicas; the region then gets another one
// elsewhere if it has too few. The target goes if it is still being filled, because a complete
// replica must not go then.
func (c *Configuration) endBrokenMoves(before *Configuration) {
	for _, g := range c.groups() {
		var broken []int
		for _, i := range g {
			p := &c.Regions[i]
			if was, _ := before.Placement(p.Region); p.Move != nil && len(p.Replicas()) < len(was.Replicas()) {
				broken = append(broken, i)
			}
		}
		isFilled := !slices.ContainsFunc(broken, func(i int) bool { return slices.Contains(c.Regions[i].Filling, c.Regions[i].Move.To) })
		for _, i := range broken {
			p := &c.Regions[i]
			move := *p.Move
			c.endBrokenMove(p, isFilled)
			if p.Has(move.From) { // the order has not been carried out, if it was one
				p.Pinned = without(p.Pinned, move.To)
			}
		}
		if len(broken) > 0 && !c.isTogether(g) {
			c.dissolve(g)
		}
	}
}

func (c *Configuration) endBrokenMove(p *Placement, isFilled bool) {
	move := *p.Move
	p.Move = nil
	areTooMany := len(p.Backups) >= c.most(p) // an unavailable region has no primary among its replicas
	areTooClose := p.Has(move.From) && p.Has(move.To) && c.domain(move.From) == c.domain(move.To)
	if !areTooMany && !areTooClose {
		return
	}
	goes := move.To
	if (areTooClose && isFilled && p.Primary != move.From) || p.Primary == move.To {
		goes = move.From
	}
	p.Backups = slices.DeleteFunc(p.Backups, func(m rdma.MachineID) bool { return m == goes })
	p.noLongerFilling(goes)
	p.LastReplicaChange = c.ID
}

// IsDraining reports whether member m is to have no replicas.
func (c *Configuration) IsDraining(m rdma.MachineID) bool {
	member, ok := c.Member(m)
	return ok && slices.Contains(c.Draining, Memory{Machine: m, Token: member.Memory})
}

// Drain returns the configuration after c in which member m is being drained: it gets no
// replicas of other machines' regions, and its replicas move away. It returns c if m is being
// drained already. It fails with ErrCannotDrain if the other machines cannot take the replicas.
//
// Draining goes with m's memory: if m comes back with it after having been away, m is drained
// further; a machine of the same number with an empty folder is another one.
func (c *Configuration) Drain(m rdma.MachineID) (*Configuration, error) {
	member, ok := c.Member(m)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: machine %d is no member of configuration %d", ErrCannotDrain, m, c.ID)
	case !c.CanMove():
		return nil, fmt.Errorf("%w: the machines speak version %d of the protocol, and version %d is needed: start those of older programs with this one",
			ErrCannotDrain, c.Version(), protocol.Moves)
	case c.IsDraining(m):
		return c, nil
	}
	d := c.Succeed()
	d.Draining = append(d.Draining, Memory{Machine: m, Token: member.Memory})
	if err := d.CheckResize(); err != nil && c.CheckResize() == nil {
		return nil, fmt.Errorf("%w: regions are to get %d replicas, which have no place without machine %d: wait until they have them, or add a machine first", ErrCannotDrain, c.Replicas, m)
	}
	if err := d.CheckDrain(m); err != nil {
		return nil, err
	}
	return d, nil
}

// Undrain returns the configuration after c in which machine m may have replicas again, or c if
// it may have them already. m need not be a member.
func (c *Configuration) Undrain(m rdma.MachineID) *Configuration {
	isOfM := func(x Memory) bool { return x.Machine == m }
	if !slices.ContainsFunc(c.Draining, isOfM) {
		return c
	}
	d := c.Succeed()
	d.Draining = dropMemories(d.Draining, isOfM)
	return d
}

// dropMemories returns a list without the memories for which isGone returns true, nil if nothing is
// left. It overwrites list.
func dropMemories(list []Memory, isGone func(Memory) bool) []Memory {
	if list = slices.DeleteFunc(list, isGone); len(list) == 0 {
		return nil
	}
	return list
}

// forgetDrained ends the draining of machines that have come back with another memory.
func (c *Configuration) forgetDrained() {
	c.Draining = dropMemories(c.Draining, func(x Memory) bool {
		m, in := c.Member(x.Machine)
		return in && m.Memory != x.Token
	})
}

// CheckDrain fails with ErrCannotDrain if replicas of m, which is being drained, have nowhere
// to go; the error says what is missing. In a copy of c, CheckDrain first carries out what is
// left of a resize. Then it carries out the moves of all machines that are being drained, since
// each move takes room from the next.
func (c *Configuration) CheckDrain(m rdma.MachineID) error {
	if left := c.domains(); left < c.Replicas {
		return fmt.Errorf("%w: without machine %d the machines that take regions are in %d failure domains, and each region is to have %d replicas: start machines that are away, or add one, first",
			ErrCannotDrain, m, left, c.Replicas)
	}
	d := c.Clone()
	d.resizeAll() // if there is no room to grow, that is not the drain's fault
	pl := newPlanner(d)
	for _, g := range d.groups() {
		p := &d.Regions[g[0]]
		if p.Move != nil || !p.IsAvailable() {
			continue // a group that moves has a target; StandsStill names an unavailable one
		}
		if p.Has(m) && !d.isComplete(g) {
			return fmt.Errorf("%w: regions %v of machine %d have fewer replicas than they should, since no other machine has room for one more, and they move only when they have all: make room, or add a machine",
				ErrCannotDrain, d.regionsOf(g), m)
		}
		for _, from := range p.Replicas() {
			if !d.IsDraining(from) {
				continue
			}
			if to, ok := pl.best(g, from); ok {
				pl.carryOut(g, Move{from, to})
			} else if from == m {
				return fmt.Errorf("%w: no other machine has room for %d more regions, or all of those are in the failure domains of their other replicas: regions %v of machine %d",
					ErrCannotDrain, len(g), d.regionsOf(g), m)
			}
		}
	}
	return nil
}

// isComplete reports whether the regions of a group are together and have as many replicas as
// they should. Other groups need another replica, not a move.
func (c *Configuration) isComplete(group []int) bool {
	p := &c.Regions[group[0]]
	return c.isTogether(group) && len(p.Replicas()) >= c.Least(p)
}

// StandsStill returns what all further moves wait for: moves that have not ended, replicas that
// are being filled, or unavailable regions. It returns "" if there is nothing of that kind.
func (c *Configuration) StandsStill() string {
	first, others := "", 0
	for i := range c.Regions {
		p := &c.Regions[i]
		switch {
		case !p.isBusy():
		case first != "":
			others++
		case !p.IsAvailable():
			first = fmt.Sprintf("region %d, which is unavailable until one of its memories is back", p.Region)
		case p.Move != nil:
			first = fmt.Sprintf("region %d, which moves %v", p.Region, p.Move)
		default:
			first = fmt.Sprintf("region %d, which is being filled at machine %d", p.Region, p.Filling[0])
		}
	}
	if others > 0 {
		first += fmt.Sprintf("; and %d more", others)
	}
	return first
}

// isBusy reports whether the moves of other regions wait for this region.
func (p *Placement) isBusy() bool { return len(p.Filling) > 0 || p.Move != nil || !p.IsAvailable() }
