package cluster

import (
	"slices"

	"github.com/farmsql/farmsql/rdma"
)

// Moves even out the replicas of the machines, and then handovers (handover.go) even out the
// primaries. The cost measures how uneven they are: it is the sum, over the machines, of the
// squares of the numbers of their replicas. NextMoves returns only moves that lower it. A move
// does exactly what was planned: the target takes the place of the machine that the replica
// leaves. So every move lowers the cost, which never rises again: machines never pass regions
// to and fro.
//
// While a member does not know handovers, moves have to even out the primaries, too: the cost
// then includes the squares of the numbers of primaries.

const (
	// regionsAtOnce bounds how many regions move at once, if it is more than one group. Each of them
	// is filled at the pace of recovery; but each batch interrupts commits twice, for a moment.
	regionsAtOnce = 4
	// evenPart is how uneven machines may stay: a difference of up to 1/evenPart of the mean is not
	// worth copying. It is a difference in regions, but the operator looks at bytes, and the newest region of each machine is
	// mostly empty: with a difference of a fifth in regions, bytes differed by a third.
	evenPart = 10
)

// NextMoves returns the moves to begin now. It returns none while moves have not ended or
// replicas are being filled, because the order in which these end would matter. Replicas of
// machines that are being drained come first. If balance is set, NextMoves also evens out the
// other replicas, except those that an operator has pinned. It returns moves of regionsAtOnce regions
// at most, or of one larger group.
func (c *Configuration) NextMoves(balance bool) (moves []GroupMove) {
	if (!balance && len(c.Draining) == 0) || !c.BeginsMoves() {
		return nil
	}
	pl := newPlanner(c)
	for regions := 0; ; {
		g, move, ok := pl.next(balance)
		if regions += len(g); !ok || (len(moves) > 0 && regions > regionsAtOnce) {
			return moves
		}
		moves = append(moves, GroupMove{c.Regions[g[0]].Group, move})
		pl.apply(g, move)
	}
}

// MoveOn returns the configuration after c that does the first of these steps for which there
// is something to do: end moves; resize regions (ResizeOn); begin the next moves (NextMoves);
// if balance is set, hand over primaries (NextHandovers). Handovers come last, because the
// moves of replicas change the primaries, too. It returns nil if there is nothing to do.
func (c *Configuration) MoveOn(balance bool) (*Configuration, Remapped) {
	if d, report := c.EndMoves(); d != nil {
		return d, report
	}
	if d, report := c.ResizeOn(); d != nil {
		return d, report
	}
	if moves := c.NextMoves(balance); len(moves) > 0 {
		return c.StartMoves(moves)
	}
	if !balance {
		return nil, Remapped{}
	}
	if handovers := c.NextHandovers(); len(handovers) > 0 {
		return c.HandOver(handovers)
	}
	return nil, Remapped{}
}

// BeginsMoves reports whether nothing stands in the way of a move.
func (c *Configuration) BeginsMoves() bool {
	return c.CanMove() && !slices.ContainsFunc(c.Regions, func(p Placement) bool { return p.isBusy() })
}

// An Urgency says how long moves can wait.
type Urgency uint8

// Urgencies.
const (
	NothingMoves Urgency = iota // MoveOn has nothing to do
	ForBalance                  // MoveOn(true) has something to do, MoveOn(false) has not
	AtOnce
)

// Urgency returns how urgent the next moves are. It plans no more than the first of them.
func (c *Configuration) Urgency() Urgency {
	if slices.ContainsFunc(c.Regions, func(p Placement) bool { return p.Move != nil }) {
		if slices.ContainsFunc(c.groups(), c.isFilledMove) {
			return AtOnce
		}
		return NothingMoves
	}
	if d, _ := c.ResizeOn(); d != nil {
		return AtOnce
	}
	if !c.BeginsMoves() {
		return NothingMoves
	}
	pl := newPlanner(c)
	_, move, ok := pl.next(true)
	switch {
	case ok && c.IsDraining(move.From):
		return AtOnce
	case ok:
		return ForBalance
	}
	if c.CanHandOver() && pl.chains().next(len(c.Regions)) != nil {
		return ForBalance
	}
	return NothingMoves
}

// A planner plans moves of groups. Its counts include those of the moves that it has applied.
type planner struct {
	c               *Configuration
	groups          [][]int                // the groups that may move
	together        [][]int                // the groups that may be handed over
	load, primaries map[rdma.MachineID]int // once the moves have ended
	occupied        map[rdma.MachineID]int // all replicas while the moves go on: none has left
	targets         []rdma.MachineID
}

// newPlanner returns a planner for c with no moves yet.
func newPlanner(c *Configuration) *planner {
	pl := &planner{c: c, load: c.load(), occupied: c.load(), primaries: make(map[rdma.MachineID]int)}
	for i := range c.Regions {
		if c.Regions[i].IsAvailable() {
			pl.primaries[c.Regions[i].Primary]++
		}
	}
	for _, g := range c.groups() {
		if c.isComplete(g) {
			pl.groups = append(pl.groups, g)
		}
		if c.Regions[g[0]].IsAvailable() && c.isTogether(g) {
			pl.together = append(pl.together, g)
		}
	}
	for _, m := range c.Machines {
		if !c.IsDraining(m) {
			pl.targets = append(pl.targets, m)
		}
	}
	return pl
}

// next returns the next move, and the group that moves; ok is false if there is none. Moves away from
// machines that are being drained come first; there are others only if balance is set.
func (pl *planner) next(balance bool) (group []int, move Move, ok bool) {
	for _, g := range pl.groups {
		for _, m := range pl.c.Regions[g[0]].Replicas() {
			if !pl.c.IsDraining(m) {
				continue
			}
			if to, found := pl.best(g, m); found {
				return g, Move{m, to}, true
			}
		}
	}
	if !balance {
		return nil, Move{}, false
	}
	low := machineLoad{pl.least(pl.load), pl.least(pl.primaries)}
	var lowest moveCost
	for _, g := range pl.groups {
		for _, m := range pl.c.Regions[g[0]].Replicas() {
			if !pl.isWorth(g, m, low) || pl.c.isPinned(g, m) { // checked first, as next runs for each new revision and mostly finds nothing worth a move
				continue
			}
			to, found := pl.best(g, m)
			if found && pl.cost(g, m, to).lowers(lowest) && pl.isWorth(g, m, machineLoad{pl.load[to], pl.primaries[to]}) {
				group, move, lowest = g, Move{m, to}, pl.cost(g, m, to)
			}
		}
	}
	return group, move, group != nil
}

// machineLoad is how many replicas a machine has, and of how many regions it is the primary.
type machineLoad struct{ replicas, primaries int }

// least returns the lowest of the counts of the machines that may get replicas.
func (pl *planner) least(counts map[rdma.MachineID]int) (least int) {
	for i, m := range pl.targets {
		if n := counts[m]; i == 0 || n < least {
			least = n
		}
	}
	return least
}

// most returns the highest of the counts of the machines that may get replicas.
func (pl *planner) most(counts map[rdma.MachineID]int) (most int) {
	for _, m := range pl.targets {
		most = max(most, counts[m])
	}
	return most
}

// best returns the machine to which a group's replica at m moves at the lowest cost; ok is
// false if none can take it.
func (pl *planner) best(g []int, m rdma.MachineID) (best rdma.MachineID, ok bool) {
	p := &pl.c.Regions[g[0]]
	for _, to := range pl.targets {
		if p.Has(to) || !pl.c.sparesDomain(p, to, m) || !pl.c.haveRoom(pl.occupied, []rdma.MachineID{to}, len(g)) {
			continue
		}
		if !ok || pl.cost(g, m, to).isBelow(pl.cost(g, m, best)) {
			best, ok = to, true
		}
	}
	return best, ok
}

// A moveCost is half of what a move adds to the cost (all), and to the cost of the primaries
// alone. Of moves that add the same to the cost, the planner prefers the one that adds least
// for the primaries: it leaves fewer handovers to do.
type moveCost struct{ all, primaries int }

func (a moveCost) isBelow(b moveCost) bool {
	return a.all < b.all || (a.all == b.all && a.primaries < b.primaries)
}

// lowers reports whether a move lowers the cost, and by more than the best one so far. The zero best
// stands for none.
func (a moveCost) lowers(best moveCost) bool { return a.all < 0 && a.isBelow(best) }

// cost returns the cost of a group's move. Moving n replicas from a machine with f to one with t adds
// (f-n)² + (t+n)² - f² - t² to the cost, which is 2n(n+t-f).
func (pl *planner) cost(g []int, from, to rdma.MachineID) moveCost {
	n := len(g)
	cost := moveCost{all: n * (n + pl.load[to] - pl.load[from])}
	if pl.c.Regions[g[0]].Primary == from {
		cost.primaries = n * (n + pl.primaries[to] - pl.primaries[from])
	}
	if !pl.c.CanHandOver() {
		cost.all += cost.primaries
	}
	return cost
}

// isWorth reports whether a machine and the target of a move, which has the given load, are so uneven
// that copying is worth it.
func (pl *planner) isWorth(g []int, from rdma.MachineID, to machineLoad) bool {
	regions := len(pl.c.Regions)
	if pl.isUneven(len(g), pl.load[from]-to.replicas, regions*pl.c.Replicas) {
		return true
	}
	isPrimary := pl.c.Regions[g[0]].Primary == from
	return isPrimary && !pl.c.CanHandOver() && pl.isUneven(len(g), pl.primaries[from]-to.primaries, regions)
}

// isUneven reports whether a machine has so many more than another that it should give the
// other a group of n regions. d is the difference, and total the sum over all machines:
// d must exceed 1/evenPart of the mean, and exceed n, so that the move makes it smaller.
func (pl *planner) isUneven(n, d, total int) bool {
	return d > n && d*evenPart*len(pl.targets) > total
}

// apply counts a move as done. The group does not move again.
func (pl *planner) apply(g []int, move Move) {
	pl.load[move.From] -= len(g)
	pl.load[move.To] += len(g)
	pl.occupied[move.To] += len(g)
	if pl.c.Regions[g[0]].Primary == move.From {
		pl.primaries[move.From] -= len(g)
		pl.primaries[move.To] += len(g)
	}
	pl.groups = slices.DeleteFunc(pl.groups, func(x []int) bool { return x[0] == g[0] })
}

// carryOut counts a move as done, and gives the replica to the target. The configuration is the
// planner's own.
func (pl *planner) carryOut(g []int, move Move) {
	pl.apply(g, move)
	for _, i := range g {
		p := &pl.c.Regions[i]
		p.Backups, p.Move = append(p.Backups, move.To), &move
		p.leave(pl.c.ID)
	}
}
