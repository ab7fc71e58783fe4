package history

import "fmt"

// Check checks a history. The order of the slice does not matter.
func Check(txs []Transaction, o Options) Report { return check(txs, nil, o) }

// check is Check for a history with lists, whose elements are given in order.
func check(txs []Transaction, order map[Object][]Value, o Options) Report {
	c := &checker{options: o, txs: txs, seen: make([]bool, len(txs)), writers: make(map[place]writer), readers: make(map[place][]int), next: make(map[place]install)}
	c.placeAppends(order)
	c.indexWrites()
	c.choose()
	for i := range txs {
		if c.counts[i] {
			c.checkReads(i)
		}
	}
	c.graph = newGraph(len(txs))
	c.addDependencies()
	if !o.IgnoreTime {
		c.addTime()
	}
	c.reportCycles()
	c.checkAbsences()
	return c.report
}

// A place is one value of one object.
type place struct {
	object Object
	value  Value
}

// A writer is the transaction that wrote a value.
type writer struct {
	tx    int
	final bool // set if this is the transaction's last value for the object
}

type checker struct {
	options Options
	txs     []Transaction
	seen    []bool // by transaction: whether something that it appended to a list is there
	counts  []bool // by transaction: whether it counts, that is, must have a place in the serial order
	report  Report

	writers map[place]writer
	readers map[place][]int   // the transactions that read the value, if they count (see counts), except its writer
	next    map[place]install // the write that replaced a value
	graph   *graph
}

// indexWrites indexes the writers of all values, and counts outcomes.
func (c *checker) indexWrites() {
	objects := make(map[Object]bool)
	for i := range c.txs {
		t := &c.txs[i]
		c.countOutcome(t)
		if t.Outcome != Unknown && t.End < t.Start {
			c.malformed(i, "ended before it began")
		}
		last := make(map[Object]Value)
		for _, op := range t.Ops {
			if !op.Write {
				continue
			}
			objects[op.Object] = true
			p := place{op.Object, op.Value}
			if w, taken := c.writers[p]; taken {
				c.malformed(i, fmt.Sprintf("wrote %s=%d, as T%d did", c.object(op.Object), op.Value, w.tx))
				continue
			}
			if op.Value == Initial {
				c.malformed(i, fmt.Sprintf("wrote the initial value to %s", c.object(op.Object)))
				continue
			}
			if before, again := last[op.Object]; again {
				c.writers[place{op.Object, before}] = writer{tx: i}
			}
			last[op.Object] = op.Value
			c.writers[p] = writer{tx: i, final: true}
		}
	}
	c.report.Objects = len(objects)
}

func (c *checker) countOutcome(t *Transaction) {
	switch t.Outcome {
	case Committed:
		c.report.Committed++
	case Aborted:
		c.report.Aborted++
	default:
		c.report.Unknown++
	}
}

func (c *checker) malformed(i int, what string) {
	c.report.add(Violation{Kind: Malformed, Transactions: []int{i}, Text: c.name(i) + " " + what})
}

// choose decides which transactions count: committed ones, aborted ones whose reads are checked,
// and transactions of unknown outcome whose writes a counting transaction saw.
func (c *checker) choose() {
	c.counts = make([]bool, len(c.txs))
	var todo []int
	count := func(i int) {
		if !c.counts[i] {
			c.counts[i] = true
			c.report.Transactions++
			todo = append(todo, i)
		}
	}
	for i := range c.txs {
		switch t := &c.txs[i]; t.Outcome {
		case Committed:
			count(i)
		case Unknown:
			if c.seen[i] {
				count(i)
			}
		case Aborted:
			if t.Shown || c.options.Opacity {
				count(i)
			}
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, op := range c.txs[i].Ops {
			if w, ok := c.writers[place{op.Object, op.Value}]; ok && !op.Write && !op.Absent && c.txs[w.tx].Outcome == Unknown {
				count(w.tx)
			}
		}
	}
}

// installs reports whether others may see what transaction i wrote.
func (c *checker) installs(i int) bool { return c.counts[i] && c.txs[i].Outcome != Aborted }

// checkReads checks each read of transaction i, and records the readers of each
// value.
func (c *checker) checkReads(i int) {
	sees := make(map[Object]Op) // what a read must see: the last write, or the last read that differed
	for _, op := range c.txs[i].Ops {
		if op.Absent && !op.Write {
			continue // checkAbsences checks reads of absence
		}
		before, known := sees[op.Object]
		switch {
		case op.Write:
			sees[op.Object] = op
		case !known:
			sees[op.Object] = op
			c.checkRead(i, op)
		case op.Value != before.Value:
			sees[op.Object] = op
			verb := "had read"
			if before.Write {
				verb = "had written"
			}
			c.violation(UnstableRead, []int{i}, fmt.Sprintf("%s read %s=%d but %s %d", c.name(i), c.object(op.Object), op.Value, verb, before.Value))
		}
	}
}

// checkRead checks a read of another transaction's write.
func (c *checker) checkRead(i int, op Op) {
	p := place{op.Object, op.Value}
	w, ok := c.writers[p]
	switch {
	case op.Value == Initial:
		c.readers[p] = append(c.readers[p], i)
	case !ok:
		c.violation(GarbageRead, []int{i}, fmt.Sprintf("%s read %s=%d, which nobody wrote", c.name(i), c.object(op.Object), op.Value))
	case w.tx == i:
		c.violation(GarbageRead, []int{i}, fmt.Sprintf("%s read %s=%d before it wrote that", c.name(i), c.object(op.Object), op.Value))
	case c.txs[w.tx].Outcome == Aborted:
		c.violation(DirtyRead, []int{i, w.tx}, fmt.Sprintf("%s read %s=%d, written by %s, which aborted", c.name(i), c.object(op.Object), op.Value, c.name(w.tx)))
	case !w.final:
		c.violation(IntermediateRead, []int{i, w.tx}, fmt.Sprintf("%s read %s=%d, which %s had overwritten itself", c.name(i), c.object(op.Object), op.Value, c.name(w.tx)))
	default:
		c.readers[p] = append(c.readers[p], i)
	}
}

// violation reports a violation, with a line for each transaction involved.
func (c *checker) violation(k Kind, txs []int, text string) {
	for _, i := range txs {
		text += "\n\t" + c.describe(i)
	}
	c.report.add(Violation{Kind: k, Transactions: txs, Text: text})
}
