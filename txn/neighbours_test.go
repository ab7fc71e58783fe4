package txn

import (
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
)

// Objects share a READ only if they follow each other and have one route: after a reconfiguration
// between two of them, they have different primaries.
func TestNeighbours(t *testing.T) {
	before, after := new(route.Route), new(route.Route)
	p := region.MakePtr(region.MakeAddr(1, 4096), 2, 0)
	of := func(rt *route.Route, elements ...int) (reads []aheadRead) {
		for _, i := range elements {
			reads = append(reads, aheadRead{ptr: p.Element(i), route: rt})
		}
		return reads
	}
	for _, c := range []struct {
		name  string
		reads []aheadRead
		want  int
	}{
		{"one", of(before, 0), 1},
		{"three in a row", of(before, 0, 1, 2), 3},
		{"a gap", of(before, 0, 1, 3), 2},
		{"backwards", of(before, 1, 0), 1},
		{"the route has changed", append(of(before, 0, 1), of(after, 2, 3)...), 2},
	} {
		if n := neighbours(c.reads); n != c.want {
			t.Errorf("%s: %d share a READ, want %d", c.name, n, c.want)
		}
	}
}
