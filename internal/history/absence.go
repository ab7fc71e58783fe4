package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A read of absence found no object where one may be. The read does not show which deletion
// it saw, so it has no place in the graph. It is correct if, at some moment of the read, the
// object may have been in some state without a value. The graph of the other transactions
// bounds the time of each state.
//
// Two reads of absence are compared only if they are of the same object: the later one must
// not need an earlier state. So the check may miss anomalies that show only in reads of
// absence of several objects, but it reports no correct history.

// A stay is a state of an object without a value, with bounds on its time.
type stay struct {
	value Value // the value of the deletion that began the state
	// A read can have seen the state only if its end is not before earliest, and its start is not after
	// latest.
	earliest, latest int64
}

// An absence is a read that found an object absent.
type absence struct {
	tx         int
	start, end int64
}

// checkAbsences checks the reads of absence, if the rest of the history is correct.
func (c *checker) checkAbsences() {
	reads := c.absences()
	if len(reads) == 0 || len(c.report.Violations) > 0 {
		return
	}
	latestStart, earliestEnd := c.bounds()
	for _, o := range sortedObjects(reads) {
		c.checkAbsencesOf(o, reads[o], c.stays(o, latestStart, earliestEnd))
	}
}

// absences returns the reads of absence, by object.
func (c *checker) absences() map[Object][]absence {
	reads := make(map[Object][]absence)
	for i := range c.txs {
		t := &c.txs[i]
		if !c.counts[i] || !slices.ContainsFunc(t.Ops, func(op Op) bool { return op.Absent && !op.Write }) {
			continue
		}
		if len(t.Ops) > 1 {
			c.malformed(i, "read an absence and did something else")
			continue
		}
		a := absence{i, t.Start, t.End}
		if t.Outcome == Unknown || c.options.IgnoreTime {
			a.end = math.MaxInt64
		}
		if c.options.IgnoreTime {
			a.start = math.MinInt64
		}
		reads[t.Ops[0].Object] = append(reads[t.Ops[0].Object], a)
	}
	return reads
}

func sortedObjects(reads map[Object][]absence) []Object {
	var objects []Object
	for o := range reads {
		objects = append(objects, o)
	}
	slices.Sort(objects)
	return objects
}

// bounds returns two times for each node of the graph: the latest begin among its predecessors and
// itself, and the earliest end among its successors and itself. The graph has no cycle.
func (c *checker) bounds() (latestStart, earliestEnd []int64) {
	order := c.graph.topological()
	latestStart, earliestEnd = make([]int64, len(c.graph.edges)), make([]int64, len(c.graph.edges))
	for i := range latestStart {
		latestStart[i], earliestEnd[i] = math.MinInt64, math.MaxInt64
		if i < len(c.txs) && c.counts[i] {
			latestStart[i] = c.txs[i].Start
			if c.txs[i].Outcome != Unknown {
				earliestEnd[i] = c.txs[i].End
			}
		}
	}
	for _, n := range order {
		for _, e := range c.graph.edges[n] {
			latestStart[e.to] = max(latestStart[e.to], latestStart[n])
		}
	}
	for _, n := range slices.Backward(order) {
		for _, e := range c.graph.edges[n] {
			earliestEnd[n] = min(earliestEnd[n], earliestEnd[e.to])
		}
	}
	return latestStart, earliestEnd
}

// stays returns an object's states without a value, in order. Last come those of unseen deletions by
// transactions with unknown outcome: each may have happened at any time since its transaction began, or never.
func (c *checker) stays(o Object, latestStart, earliestEnd []int64) []stay {
	stays := []stay{{earliest: math.MinInt64, latest: math.MaxInt64}}
	at, gone := &stays[0], true // the latest stay; whether value v means that the object is absent
	for v := Initial; ; {
		next, replaced := c.next[place{o, v}]
		if !replaced {
			break
		}
		if gone {
			at.latest = earliestEnd[next.tx]
		}
		gone = next.absent
		if gone {
			stays = append(stays, stay{value: next.value, earliest: latestStart[next.tx], latest: math.MaxInt64})
			at = &stays[len(stays)-1]
		}
		v = next.value
	}
	for i := range c.txs {
		t := &c.txs[i]
		if c.counts[i] || t.Outcome != Unknown {
			continue
		}
		for _, op := range t.Ops {
			if op.Write && op.Absent && op.Object == o {
				stays = append(stays, stay{value: op.Value, earliest: t.Start, latest: math.MaxInt64})
			}
		}
	}
	return stays
}

// checkAbsencesOf assigns to each read of absence the first of the object's stays that the read may
// have seen. Stays are in order, so a read cannot see an earlier stay than a read that ended before
// it began. checkAbsencesOf reports a read that can have seen no stay.
func (c *checker) checkAbsencesOf(o Object, reads []absence, stays []stay) {
	slices.SortFunc(reads, func(a, b absence) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.tx, b.tx)) })
	saw := make([]int, 0, len(reads)) // indexes of stays
	for _, r := range reads {
		first := 0
		for earlier, s := range saw {
			if reads[earlier].end < r.start {
				first = max(first, s)
			}
		}
		skipped := slices.IndexFunc(stays[first:], func(s stay) bool { return s.earliest <= r.end && r.start <= s.latest })
		if skipped < 0 {
			c.violation(FalseAbsence, []int{r.tx}, fmt.Sprintf("%s found no %s, which had a value all the time", c.name(r.tx), c.object(o)))
			skipped = 0 // a read that is wrong does not bound later ones any further
		}
		saw = append(saw, first+skipped)
	}
}

// topological returns the nodes of a graph that has no cycle, each before the nodes to which
// its edges lead.
func (g *graph) topological() []int {
	incoming := make([]int, len(g.edges))
	for _, edges := range g.edges {
		for _, e := range edges {
			incoming[e.to]++
		}
	}
	order := make([]int, 0, len(g.edges))
	for n, count := range incoming {
		if count == 0 {
			order = append(order, n)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, e := range g.edges[order[i]] {
			if incoming[e.to]--; incoming[e.to] == 0 {
				order = append(order, e.to)
			}
		}
	}
	return order
}
