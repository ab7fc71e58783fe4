package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// An install is the last write of one transaction to one object.
type install struct {
	tx       int
	value    Value
	version  uint64
	replaced Value // the value that the transaction had read before; meaningful if hasRead
	hasRead  bool
	absent   bool // set if the write is a deletion
}

// addDependencies orders the writes of each object, and adds the edges that follow.
func (c *checker) addDependencies() {
	installs := c.installsByObject()
	for _, o := range slices.Sorted(maps.Keys(installs)) {
		c.addReads(o, installs[o])
		versioned := 0
		for _, w := range installs[o] {
			if w.version != 0 {
				versioned++
			}
		}
		switch versioned {
		case len(installs[o]):
			c.orderByVersion(o, installs[o])
		case 0:
			c.orderByReads(o, installs[o])
		default:
			c.report.add(Violation{Kind: Malformed, Text: fmt.Sprintf("some writes to %s have versions and some have not", c.object(o))})
		}
	}
}

// installsByObject returns the last write of each transaction to each object, by object.
func (c *checker) installsByObject() map[Object][]install {
	all := make(map[Object][]install)
	for i := range c.txs {
		if !c.installs(i) {
			continue
		}
		first := make(map[Object]Value) // the value that the transaction read before it wrote
		wrote := make(map[Object]bool)
		for _, op := range c.txs[i].Ops {
			if !op.Write {
				if _, read := first[op.Object]; !read && !wrote[op.Object] {
					first[op.Object] = op.Value
				}
				continue
			}
			wrote[op.Object] = true
			if w := c.writers[place{op.Object, op.Value}]; w.tx != i || !w.final {
				continue
			}
			replaced, read := first[op.Object]
			all[op.Object] = append(all[op.Object], install{i, op.Value, op.Version, replaced, read, op.Absent})
		}
	}
	return all
}

// addReads adds edges from the writer of a value to its readers.
func (c *checker) addReads(o Object, installs []install) {
	for _, w := range installs {
		for _, reader := range c.readers[place{o, w.value}] {
			c.depend(w.tx, reader, edge{kind: wr, object: o, value: w.value})
		}
	}
}

// orderByVersion orders the writes by the engine's version numbers.
func (c *checker) orderByVersion(o Object, installs []install) {
	slices.SortFunc(installs, func(a, b install) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.tx, b.tx))
	})
	before := install{tx: -1, value: Initial}
	for _, w := range installs {
		if w.version == before.version {
			c.violation(LostUpdate, []int{before.tx, w.tx}, fmt.Sprintf("%s and %s both wrote version %d of %s", c.name(before.tx), c.name(w.tx), w.version, c.object(o)))
		}
		c.replaces(o, before.tx, before.value, w)
		before = w
	}
}

// orderByReads puts each write after the write that its transaction had read.
func (c *checker) orderByReads(o Object, installs []install) {
	next := make(map[Value]int)
	for _, w := range installs {
		if !w.hasRead {
			c.malformed(w.tx, fmt.Sprintf("wrote %s=%d without a version and without having read it", c.object(o), w.value))
			continue
		}
		if other, taken := next[w.replaced]; taken {
			c.violation(LostUpdate, []int{other, w.tx}, fmt.Sprintf("%s and %s both replaced %s=%d", c.name(other), c.name(w.tx), c.object(o), w.replaced))
			continue
		}
		next[w.replaced] = w.tx
		before := -1
		if p, ok := c.writers[place{o, w.replaced}]; ok && c.installs(p.tx) {
			before = p.tx
		}
		c.replaces(o, before, w.replaced, w)
	}
}

// replaces adds edges to w from transaction before, which wrote the value that w replaced (-1 if no
// transaction did), and from all readers of that value.
func (c *checker) replaces(o Object, before int, value Value, w install) {
	c.next[place{o, value}] = w
	if before >= 0 {
		c.depend(before, w.tx, edge{kind: ww, object: o, value: value, next: w.value})
	}
	for _, reader := range c.readers[place{o, value}] {
		c.depend(reader, w.tx, edge{kind: rw, object: o, value: value, next: w.value})
	}
}

// depend adds an edge between two transactions, unless they are the same.
func (c *checker) depend(from, to int, e edge) {
	if from != to {
		e.to = to
		c.graph.add(from, e)
		c.report.Dependencies++
	}
}

// addTime adds edges from each transaction to the transactions that began after it had ended. Points
// in time are nodes, one for each end, in a chain:
//
//	T1 ends -> point 1 -> point 2 -> T3 begins
//	T2 ends --------------^
func (c *checker) addTime() {
	var ended []int
	for i := range c.txs {
		if t := &c.txs[i]; c.counts[i] && t.Outcome != Unknown && t.End >= t.Start {
			ended = append(ended, i)
		}
	}
	slices.SortFunc(ended, func(a, b int) int { return cmp.Compare(c.txs[a].End, c.txs[b].End) })
	point := c.graph.addNodes(len(ended))
	for n, i := range ended {
		c.graph.add(i, edge{kind: inTime, to: point + n})
		if n > 0 {
			c.graph.add(point+n-1, edge{kind: inTime, to: point + n})
		}
	}
	for i := range c.txs {
		if !c.counts[i] {
			continue
		}
		endedBefore, _ := slices.BinarySearchFunc(ended, c.txs[i].Start, func(tx int, start int64) int { return cmp.Compare(c.txs[tx].End, start) })
		if endedBefore > 0 {
			c.graph.add(point+endedBefore-1, edge{kind: inTime, to: i})
		}
	}
}
