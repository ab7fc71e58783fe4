package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// startsMax bounds the number of transactions of a group from which a cycle is
// searched.
const startsMax = 64

// A link is a relation between two transactions of a cycle.
type link struct {
	from, to int
	edge     edge
}

// reportCycles reports a short cycle of each group.
func (c *checker) reportCycles() {
	inGroup := make([]bool, len(c.graph.edges))
	for _, group := range c.graph.components() {
		for _, node := range group {
			inGroup[node] = true
		}
		c.reportCycle(c.cycleIn(group, inGroup))
		for _, node := range group {
			inGroup[node] = false
		}
	}
}

// cycleIn searches for the shortest cycle within a group, from at most startsMax of its
// transactions.
func (c *checker) cycleIn(group []int, inGroup []bool) []link {
	slices.Sort(group) // transactions come before points in time, at which no search starts
	var shortest []link
	limit := math.MaxInt
	for n, node := range group {
		if n == startsMax || node >= c.graph.txs || limit <= 2 {
			break
		}
		if edges := c.graph.shortestCycle(node, inGroup, limit); edges != nil {
			shortest = c.links(edges)
			limit = len(shortest)
		}
	}
	return shortest
}

// links turns a cycle of edges, last edge first, into a cycle of transactions.
func (c *checker) links(backwards []edge) []link {
	from := backwards[0].to
	var links []link
	for _, e := range slices.Backward(backwards) {
		if e.to < c.graph.txs {
			links = append(links, link{from: from, to: e.to, edge: e})
			from = e.to
		}
	}
	return links
}

// reportCycle reports the transactions of a cycle, with the reason for each link.
func (c *checker) reportCycle(cycle []link) {
	var text strings.Builder
	fmt.Fprintf(&text, "%d transactions cannot be ordered", len(cycle))
	var txs []int
	for _, l := range cycle {
		txs = append(txs, l.from)
		fmt.Fprintf(&text, "\n\t%s, so %s is before %s", c.explain(l), c.name(l.from), c.name(l.to))
	}
	c.violation(kindOf(cycle), txs, text.String())
}

// explain says why one transaction of a cycle comes before the next.
func (c *checker) explain(l link) string {
	from, to, o := c.name(l.from), c.name(l.to), c.object(l.edge.object)
	switch l.edge.kind {
	case wr:
		return fmt.Sprintf("%s wrote %s=%d, which %s read", from, o, l.edge.value, to)
	case ww:
		return fmt.Sprintf("%s wrote %s=%d, which %s replaced by %d", from, o, l.edge.value, to, l.edge.next)
	case rw:
		return fmt.Sprintf("%s read %s=%d, which %s replaced by %d", from, o, l.edge.value, to, l.edge.next)
	}
	return fmt.Sprintf("%s had ended at %d when %s began at %d", from, c.txs[l.from].End, to, c.txs[l.to].Start)
}

// kindOf names a cycle.
func kindOf(cycle []link) Kind {
	var count [inTime + 1]int
	for _, l := range cycle {
		count[l.edge.kind]++
	}
	switch {
	case count[inTime] > 0 && len(cycle) == 2 && count[rw] == 1:
		return StaleRead
	case count[inTime] > 0:
		return TimeTravel
	case count[rw] == 0:
		return CircularFlow
	case len(cycle) == 2 && count[rw]+count[ww] == 2 && cycle[0].edge.object == cycle[1].edge.object:
		return LostUpdate
	case count[rw] == 1:
		return FracturedRead
	case count[rw] == len(cycle):
		return WriteSkew
	}
	return LongFork
}
