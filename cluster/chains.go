package cluster

import (
	"maps"
	"slices"

	"github.com/farmsql/farmsql/rdma"
)

// chains are the paths along which handovers can pass primaries from machine to machine.
// Machine A can hand a group over only to a machine with backups of the group, such as B. If B
// does not have few primaries itself, it may be the primary of another group that has a backup
// at a machine with few, C. Then A hands a group over to B, and B one to C.
//
// All groups on a path have the same size, so that only the machines at its ends have more or fewer
// primaries afterwards.
type chains struct {
	pl    *planner
	sizes []int                  // the sizes of the groups, in order
	links map[link][]int         // the groups, by their first regions; some have another primary by now
	given map[int]rdma.MachineID // the primaries of groups that are handed over, by their first regions
}

// A link leads from a machine with primaries of groups of some size to a machine that has
// backups of these groups.
type link struct {
	from, to rdma.MachineID
	size     int
}

// chains returns the chains of all groups that may be handed over. No path leads over machines that are
// being drained: their primaries move away instead.
func (pl *planner) chains() *chains {
	ch := &chains{pl: pl, links: make(map[link][]int), given: make(map[int]rdma.MachineID)}
	if pl.most(pl.primaries)-pl.least(pl.primaries) < 2 {
		return ch // the usual case: chains is called for each new revision
	}
	sizes := make(map[int]bool)
	for _, g := range pl.together {
		sizes[len(g)] = true
		ch.add(g[0], len(g))
	}
	ch.sizes = slices.Sorted(maps.Keys(sizes))
	return ch
}

// add adds a group of n regions to the links that it makes, given its primary.
func (ch *chains) add(first, n int) {
	from := ch.primary(first)
	for _, to := range ch.pl.c.Regions[first].Replicas() {
		if to != from {
			l := link{from, to, n}
			ch.links[l] = append(ch.links[l], first)
		}
	}
}

// primary returns the primary of a group after the handovers so far.
func (ch *chains) primary(first int) rdma.MachineID {
	if m, ok := ch.given[first]; ok {
		return m
	}
	return ch.pl.c.Regions[first].Primary
}

// next returns the path that lowers the cost the most among the paths whose ends differ enough
// (isUneven for a sum of total), or nil if there is none. If total is 0, any path that lowers the cost will do.
func (ch *chains) next(total int) (best []link) {
	lowest, low := 0, ch.pl.least(ch.pl.primaries)
	for _, n := range ch.sizes {
		for _, from := range ch.pl.targets {
			primaries := ch.pl.primaries[from]
			if n*(n-(primaries-low)) >= lowest || !ch.pl.isUneven(n, primaries-low, total) {
				continue // even a path to a machine with the fewest primaries would not do
			}
			path := ch.lowestFrom(from, n, low)
			if path == nil {
				continue
			}
			d := primaries - ch.pl.primaries[path[len(path)-1].to]
			if cost := n * (n - d); cost < lowest && ch.pl.isUneven(n, d, total) {
				best, lowest = path, cost
			}
		}
	}
	return best
}

// lowestFrom returns the shortest path, for groups of n regions, from a machine to the
// reachable machine with the fewest primaries; nil if none is reachable. No machine has fewer
// than low.
func (ch *chains) lowestFrom(from rdma.MachineID, n, low int) (path []link) {
	by := map[rdma.MachineID]link{from: {}} // how each machine is reached
	lowest := from
	for reached := []rdma.MachineID{from}; len(reached) > 0 && ch.pl.primaries[lowest] > low; reached = reached[1:] {
		for _, to := range ch.pl.targets {
			l := link{reached[0], to, n}
			if _, ok := by[to]; ok || !ch.has(l) {
				continue
			}
			by[to], reached = l, append(reached, to)
			if ch.pl.primaries[to] < ch.pl.primaries[lowest] {
				lowest = to
			}
		}
	}
	for at := lowest; at != from; at = by[at].from {
		path = append(path, by[at])
	}
	slices.Reverse(path)
	return path
}

// has reports whether a link has a group. It drops groups at the front that have another primary by
// now, so that take finds one that can be handed over.
func (ch *chains) has(l link) bool {
	groups := ch.links[l]
	for len(groups) > 0 && ch.primary(groups[0]) != l.from {
		groups = groups[1:]
	}
	ch.links[l] = groups
	return len(groups) > 0
}

// take hands over one group on each link of a path. A later path may hand the same group on, or
// back.
func (ch *chains) take(path []link) {
	for _, l := range path {
		first := ch.links[l][0]
		ch.given[first] = l.to
		ch.add(first, l.size)
		ch.pl.primaries[l.from] -= l.size
		ch.pl.primaries[l.to] += l.size
	}
}

// handovers returns what has been taken, in order: one handover of each group that has another primary.
func (ch *chains) handovers() (handovers []Handover) {
	for _, first := range slices.Sorted(maps.Keys(ch.given)) {
		if p := &ch.pl.c.Regions[first]; p.Primary != ch.given[first] {
			handovers = append(handovers, Handover{p.Group, p.Primary, ch.given[first]})
		}
	}
	return handovers
}
