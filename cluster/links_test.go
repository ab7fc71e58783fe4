package cluster

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// connected returns a configuration of n machines whose CM is 0. Each region is at the given
// machines, the primary first.
func connected(n int, regions ...[]rdma.MachineID) *Configuration {
	c := &Configuration{ID: 7, Replicas: 1, NextRegion: region.ID(len(regions) + 1)}
	for i := range n {
		c.AddMember(Member{Machine: rdma.MachineID(i), FailureDomain: i})
	}
	for i, r := range regions {
		c.Replicas = max(c.Replicas, len(r))
		c.Regions = append(c.Regions, Placement{Region: region.ID(i + 1), Group: region.ID(i + 1), Primary: r[0], Backups: slices.Clone(r[1:])})
	}
	return c
}

type machines = []rdma.MachineID

func TestCover(t *testing.T) {
	filling := connected(3, machines{0, 1, 2})
	filling.Regions[0].Filling = machines{1}
	for name, x := range map[string]struct {
		c     *Configuration
		links []Link
		want  machines
	}{
		"nothing":                            {connected(3), nil, nil},
		"one link, nobody has anything":      {connected(3), []Link{{1, 2}}, machines{2}},
		"a link to the CM":                   {connected(3), []Link{{0, 1}}, machines{1}},
		"fewer primaries":                    {connected(3, machines{2, 1, 0}), []Link{{1, 2}}, machines{1}},
		"as many primaries, fewer replicas":  {connected(5, machines{1, 0}, machines{2, 0}, machines{3, 2}), []Link{{1, 2}}, machines{1}},
		"fewer filled replicas":              {filling, []Link{{1, 2}}, machines{1}},
		"one is the last with a region":      {connected(3, machines{2}, machines{1, 0}, machines{1, 0}), []Link{{1, 2}}, machines{1}},
		"both are":                           {connected(3, machines{2}, machines{1}), []Link{{1, 2}}, nil},
		"both ends of a region, one is left": {connected(5, machines{1, 2}), []Link{{1, 2}}, machines{2}},
		"a star":                             {connected(5), []Link{{1, 2}, {2, 3}, {2, 4}}, machines{2}},
		"a star whose centre is needed":      {connected(7, machines{2}), []Link{{1, 2}, {2, 3}, {2, 4}}, machines{1, 3, 4}},
		"the same, without a majority":       {connected(6, machines{2}), []Link{{1, 2}, {2, 3}, {2, 4}}, nil},
		"a triangle":                         {connected(5), []Link{{1, 2}, {2, 3}, {1, 3}}, machines{2, 3}},
		"a triangle, too few machines":       {connected(4), []Link{{1, 2}, {2, 3}, {1, 3}}, nil},
		"two parts, one cannot be resolved":  {connected(5, machines{1}, machines{2}), []Link{{1, 2}, {3, 4}}, machines{4}},
		"two parts, a majority for one":      {connected(4), []Link{{0, 1}, {2, 3}}, machines{1}},
		"of two machines none can go":        {connected(2), []Link{{0, 1}}, nil},
		"named twice, and of no member":      {connected(3), []Link{{1, 2}, {1, 2}, {1, 9}, {2, 2}}, machines{2}},
		"both replicas of a region would go": {connected(9, machines{2, 3}), []Link{{1, 2}, {2, 4}, {3, 5}, {3, 6}}, machines{2, 5, 6}},
	} {
		if got := x.c.Cover(x.links, 0); !slices.Equal(got, x.want) {
			t.Errorf("%s: evicts %v, want %v", name, got, x.want)
		}
	}
}

// No set of machines smaller than the result of Cover covers the links: the test tries all sets.
func TestCoverIsSmallest(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		n := 3 + r.IntN(6)
		any := func() rdma.MachineID { return rdma.MachineID(r.IntN(n)) }
		var regions []machines
		for range r.IntN(5) {
			p, b := any(), any()
			if regions = append(regions, machines{p}); p != b {
				regions[len(regions)-1] = machines{p, b}
			}
		}
		c := connected(n, regions...)
		first := any() // all in one part
		var links []Link
		for range 1 + r.IntN(4) {
			if other := any(); other != first {
				links = append(links, LinkOf(first, other))
			}
			first = links0(links, first)
		}
		smallest := -1
		for set := range 1 << n {
			var out machines
			for m := range n {
				if set>>m&1 == 1 {
					out = append(out, rdma.MachineID(m))
				}
			}
			covers := !slices.ContainsFunc(links, func(l Link) bool { return !slices.Contains(out, l[0]) && !slices.Contains(out, l[1]) })
			if covers && (len(out) == 0 || c.MayLose(out, 0)) && (smallest < 0 || len(out) < smallest) {
				smallest = len(out)
			}
		}
		got := c.Cover(links, 0)
		switch {
		case smallest <= 0 && len(got) > 0, smallest > 0 && len(got) != smallest:
			t.Errorf("seed %d: %v of %d machines, regions %v: evicts %v, %d suffice", seed, links, n, regions, got, smallest)
		case len(got) > 0 && !c.MayLose(got, 0):
			t.Errorf("seed %d: evicts %v, which may not go", seed, got)
		}
	}
}

// links0 returns an end of the last link, so that the next one touches it.
func links0(links []Link, otherwise rdma.MachineID) rdma.MachineID {
	if len(links) == 0 {
		return otherwise
	}
	return links[len(links)-1][len(links)%2]
}
