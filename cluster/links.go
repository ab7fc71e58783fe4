package cluster

import (
	"cmp"
	"slices"

	"github.com/farmsql/farmsql/rdma"
)

// A Link is a pair of members. At least one of the two cannot reach the other. The lower identifier
// comes first.
type Link [2]rdma.MachineID

// LinkOf returns the link between two machines.
func LinkOf(a, b rdma.MachineID) Link { return Link{min(a, b), max(a, b)} }

// coversMax bounds the number of machines in a cover: the work doubles with each. If still more
// machines would have to be left out, something other than broken links is the cause.
const coversMax = 12

// Cover returns the fewest members whose removal leaves none of the broken links (a minimum vertex
// cover), for cm to evict; cm is a member and never among them. Cover treats each connected part of
// the broken links separately: if MayLose forbids every cover of one part, only the links of that part
// stay. Among several covers it prefers the one that loses the fewest primaries, then the fewest
// filled replicas, and then the machines with the highest identifiers.
func (c *Configuration) Cover(broken []Link, cm rdma.MachineID) []rdma.MachineID {
	var evicted []rdma.MachineID
	for _, links := range c.parts(broken) {
		for size := 1; size <= min(coversMax, len(links)); size++ {
			s := coverSearch{c: c, cm: cm, before: evicted}
			s.extend(links, nil, size)
			if s.best != nil {
				evicted = append(evicted, s.best...)
				break
			}
		}
	}
	slices.Sort(evicted)
	return evicted
}

// MayLose reports whether the instance can go on without the given members, with cm as its CM: a
// majority must be left, and a full replica of each region.
func (c *Configuration) MayLose(machines []rdma.MachineID, cm rdma.MachineID) bool {
	if 2*(len(c.Machines)-len(machines)) <= len(c.Machines) || slices.Contains(machines, cm) {
		return false
	}
	_, report := c.Without(machines, cm)
	return len(report.Unavailable) == 0
}

// parts returns the broken links between members, each once and ascending, grouped by connected
// part.
func (c *Configuration) parts(broken []Link) (parts [][]Link) {
	links := slices.Clone(broken)
	links = slices.DeleteFunc(links, func(l Link) bool { return l[0] == l[1] || c.domain(l[0]) < 0 || c.domain(l[1]) < 0 })
	slices.SortFunc(links, func(a, b Link) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	links = slices.Compact(links)
	for len(links) > 0 {
		part := links[:1:1]
		links = links[1:]
		for i := 0; i < len(part); i++ {
			touches := func(l Link) bool {
				return slices.Contains(l[:], part[i][0]) || slices.Contains(l[:], part[i][1])
			}
			for _, l := range links {
				if touches(l) {
					part = append(part, l)
				}
			}
			links = slices.DeleteFunc(links, touches)
		}
		parts = append(parts, part)
	}
	return parts
}

// A coverSearch searches for the best cover of a given size.
type coverSearch struct {
	c      *Configuration
	cm     rdma.MachineID
	before []rdma.MachineID // members that are evicted in any case
	best   []rdma.MachineID
}

// extend takes the first link that picked does not cover. It adds one end of the link, and then
// tries the other, as long as there is room for more machines.
func (s *coverSearch) extend(links []Link, picked []rdma.MachineID, room int) {
	i := slices.IndexFunc(links, func(l Link) bool { return !slices.Contains(picked, l[0]) && !slices.Contains(picked, l[1]) })
	switch {
	case i < 0:
		s.offer(picked)
	case room > 0:
		for _, m := range links[i] {
			if m != s.cm {
				s.extend(links, append(slices.Clone(picked), m), room-1)
			}
		}
	}
}

// offer makes picked the best cover so far if it is better than the previous one and MayLose permits it.
func (s *coverSearch) offer(picked []rdma.MachineID) {
	slices.Sort(picked)
	if (s.best != nil && s.compare(picked, s.best) >= 0) || !s.c.MayLose(slices.Concat(s.before, picked), s.cm) {
		return
	}
	s.best = picked
}

// compare returns a negative number if evicting the first machines costs less than evicting the
// second. Both must have the same number of machines.
func (s *coverSearch) compare(a, b []rdma.MachineID) int {
	primariesA, filledA := s.c.holdings(a)
	primariesB, filledB := s.c.holdings(b)
	return cmp.Or(cmp.Compare(primariesA, primariesB), cmp.Compare(filledA, filledB), slices.Compare(b, a))
}

// holdings counts the primaries and the filled replicas at machines.
func (c *Configuration) holdings(machines []rdma.MachineID) (primaries, filled int) {
	for i := range c.Regions {
		p := &c.Regions[i]
		for _, m := range machines {
			if p.Primary == m {
				primaries++
			}
			if p.Has(m) && !slices.Contains(p.Filling, m) {
				filled++
			}
		}
	}
	return primaries, filled
}
