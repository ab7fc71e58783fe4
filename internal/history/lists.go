package history

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A list is an object that transactions append elements to, and that each read shows as a whole. A
// read shows the order of all appends before it, so an append needs neither a version nor a read
// before it: its place in the list is its version. And a list shows what single values hide: an
// element that has vanished from its middle, or is there twice.
//
// All reads of lists count as shown to somebody (Transaction.Shown): they must be right whatever
// becomes of their transactions. When all clients have ended, the test reads every list once more.
type lists struct {
	mu      sync.Mutex
	longest map[Object][]Value // the longest read of each list
	found   Report             // violations that the reads show by themselves
}

// Append records that the transaction appended v to the list o.
func (t *Recording) Append(o Object, v Value) { t.Write(o, v) }

// ReadList records that the transaction read the list o and saw these elements, the oldest first. What the
// transaction has appended itself must come last.
func (t *Recording) ReadList(o Object, elements []Value) {
	var own []Value
	for _, op := range t.tx.Ops {
		if op.Write && op.Object == o {
			own = append(own, op.Value)
		}
	}
	t.Shown()
	others := max(0, len(elements)-len(own))
	if !slices.Equal(elements[others:], own) && len(own) > 0 {
		t.recorder.lists.add(UnstableRead, fmt.Sprintf("%s appended %d to #%d and then read %d", t.tx.Label, own, o, elements))
		return
	}
	t.recorder.lists.read(t.tx.Label, o, elements[:others])
	last := Initial
	if len(elements) > 0 {
		last = elements[len(elements)-1]
	}
	t.Read(o, last)
}

// read compares a read with the longest one so far: one must begin with the other. elements are without what
// the reader has appended itself.
func (l *lists) read(label string, o Object, elements []Value) {
	l.mu.Lock()
	longest := l.longest[o]
	n := min(len(longest), len(elements))
	forked := !slices.Equal(longest[:n], elements[:n])
	if !forked && (longest == nil || len(elements) > len(longest)) {
		if l.longest == nil {
			l.longest = make(map[Object][]Value)
		}
		l.longest[o] = append(make([]Value, 0, len(elements)), elements...) // never nil: o is a list from now on
	}
	l.mu.Unlock()
	if forked {
		l.add(ForkedList, fmt.Sprintf("%s read #%d as %d, and somebody as %d", label, o, elements, longest))
	}
}

func (l *lists) add(k Kind, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found.add(Violation{Kind: k, Text: text})
}

// order returns the elements of each list, as the longest read shows them, and the violations that
// reads have shown.
func (l *lists) order() (map[Object][]Value, Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.found
	found.Violations = slices.Clone(found.Violations)
	return maps.Clone(l.longest), found
}

// placeAppends gives each append to a list its place there as its version, and reports appends that
// have none and elements that should not be there. An append that nobody has seen is left out, if its
// outcome is unknown: it may never have happened.
func (c *checker) placeAppends(order map[Object][]Value) {
	if len(order) == 0 {
		return
	}
	places := make(map[place]uint64)
	for o, elements := range order {
		for i, v := range elements {
			if before, again := places[place{o, v}]; again {
				c.violation(DoubledAppend, nil, fmt.Sprintf("%s has %d at the places %d and %d", c.object(o), v, before, i+1))
				continue
			}
			places[place{o, v}] = uint64(i + 1)
		}
	}
	c.txs = slices.Clone(c.txs)
	appended := make(map[place]bool)
	for i := range c.txs {
		c.placeAppendsOf(i, order, places, appended)
	}
	for o, elements := range order {
		for _, v := range elements {
			if !appended[place{o, v}] {
				c.violation(GarbageRead, nil, fmt.Sprintf("%s has the element %d, which nobody appended", c.object(o), v))
			}
		}
	}
}

// placeAppendsOf places and checks the appends of transaction i.
func (c *checker) placeAppendsOf(i int, order map[Object][]Value, places map[place]uint64, appended map[place]bool) {
	t := &c.txs[i]
	isAppend := func(op Op) bool {
		_, ok := order[op.Object]
		return op.Write && ok
	}
	for _, op := range t.Ops {
		if isAppend(op) {
			appended[place{op.Object, op.Value}] = true
			c.seen[i] = c.seen[i] || places[place{op.Object, op.Value}] > 0
		}
	}
	if t.Outcome == Aborted && c.seen[i] {
		c.violation(DirtyRead, []int{i}, fmt.Sprintf("what %s appended is there, but it aborted", c.name(i)))
	}
	counts := t.Outcome == Committed || (t.Outcome == Unknown && c.seen[i])
	last := make(map[Object]uint64) // the place of the transaction's last append to each list
	ops := make([]Op, 0, len(t.Ops))
	for _, op := range t.Ops {
		if !isAppend(op) {
			ops = append(ops, op)
			continue
		}
		op.Version = places[place{op.Object, op.Value}]
		switch before := last[op.Object]; {
		case op.Version == 0 && counts:
			c.violation(LostAppend, []int{i}, fmt.Sprintf("%s appended %d to %s, which is not there", c.name(i), op.Value, c.object(op.Object)))
		case op.Version == 0 && t.Outcome == Aborted:
			ops = append(ops, op) // nobody else saw it, but its transaction may have read it
		case op.Version == 0: // never seen
		default:
			if before != 0 && op.Version != before+1 {
				c.violation(FracturedRead, []int{i}, fmt.Sprintf("%s appended %d to %s, and not next to what it appended before", c.name(i), op.Value, c.object(op.Object)))
			}
			last[op.Object] = op.Version
			ops = append(ops, op)
		}
	}
	t.Ops = ops
}
