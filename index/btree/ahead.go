package btree

import (
	"bytes"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// lookAhead holds the leaves and rows that a cursor reads before it reaches them, so that READs of
// other machines overlap. They become part of the transaction's reads only when the cursor reaches
// them. A leaf that was read ahead passes the same checks as any other: if it is no longer the
// right one, the cursor searches for the leaf as if none had been read ahead.
type lookAhead struct {
	// rows is how many rows (the objects that entries point to) are read at a time; 0 for none.
	// asked is the number of coming entries whose rows have been requested.
	rows, asked int
	// wanted is the number of leaves that are read at a time.
	wanted int
	// leaves are the leaves that have arrived, and follow the cursor's leaf in its direction; next
	// are the leaves requested after these.
	leaves []leaf
	next   []region.Ptr
}

const (
	// rowsAhead and leavesAhead bound how much is read at a time.
	rowsAhead   = 128
	leavesAhead = 16
	// entriesGuessed is the number of entries assumed for a leaf before the cursor has seen one.
	entriesGuessed = 12
)

// ReadAhead makes the cursor request rows (the objects that entries point to) before its user reads
// them: see txn.Tx.ReadAhead. It requests the rows of the first n entries together, and later the
// rows of more entries at a time. This pays off only if the user reads most of the rows.
//
// Without ReadAhead the cursor requests leaves ahead, but no rows, and only once it has left its first
// leaf. Either way the transaction's reads are exactly what the cursor has passed. Call ReadAhead before
// the first Next; it returns c.
func (c *Cursor) ReadAhead(n int) *Cursor {
	c.ahead.rows = min(max(n, 1), rowsAhead)
	c.ahead.wanted = leavesOf(c.ahead.rows, entriesGuessed)
	return c
}

// leavesOf returns how many leaves to read for a number of entries that may begin in the middle of a
// leaf: at most leavesAhead.
func leavesOf(entries, perLeaf int) int { return min(1+entries/max(perLeaf, 1), leavesAhead) }

// takeLeaf returns the leaf at pos, if it has been read ahead.
func (c *Cursor) takeLeaf(pos position) (leaf, bool) {
	a := &c.ahead
	var lf leaf
	if len(a.leaves) > 0 {
		lf, a.leaves = a.leaves[0], a.leaves[1:]
	} else if next, ok := c.collect(); ok {
		lf = next
	} else {
		return leaf{}, false
	}
	if !pos.within(lf.node) {
		c.forgetLeaves()
		return leaf{}, false
	}
	return lf, true
}

// collect returns the next requested leaf, if it has arrived.
func (c *Cursor) collect() (leaf, bool) {
	a := &c.ahead
	if len(a.next) == 0 {
		return leaf{}, false
	}
	p := a.next[0]
	a.next = a.next[1:]
	b, v, ok := c.t.PeekAhead(p)
	if !ok {
		a.next = nil
		return leaf{}, false
	}
	n, err := parse(b, c.tr.id)
	if err != nil || n.level() != 0 || n.checkSlots() != nil {
		a.next = nil // seek returns the reason
		return leaf{}, false
	}
	return leaf{n, txn.Source{Ptr: p, Version: v}}, true
}

// forgetLeaves drops the leaves read ahead: they no longer follow the cursor's leaf.
func (c *Cursor) forgetLeaves() { c.ahead.leaves, c.ahead.next = nil, nil }

// askLeaves requests the leaf at pos and some after it, if they are at other machines and the cache
// knows their pointers. Without rows to read, the number of leaves doubles from one call to the next.
func (c *Cursor) askLeaves(s *scratch, pos position) {
	a := &c.ahead
	c.forgetLeaves()
	switch {
	case a.wanted == 0: // the scan may end in its first leaf
		a.wanted = 1
	case a.rows == 0:
		a.wanted = min(2*a.wanted, leavesAhead)
	}
	isHere := c.q != nil && !c.isElsewhere(c.lf.src.Ptr) // the leaf just left, so most likely the next, too
	if a.wanted == 1 || (a.rows == 0 && isHere) {
		return
	}
	ptrs := c.path(c.p.ahead[:0], s, pos, a.wanted)
	c.p.ahead = ptrs
	if len(ptrs) > 1 && c.isElsewhere(ptrs[0]) {
		ptrs = ptrs[:c.t.ReadAhead(ptrs)]
	}
	if len(ptrs) > 1 {
		a.next = append(a.next, ptrs[1:]...) // the caller itself reads the first
	}
}

// path appends pointers to at most n leaves of the range, beginning with the leaf at pos. It finds
// them in cached nodes, and ends early where the next node is not cached.
func (c *Cursor) path(ptrs []region.Ptr, s *scratch, pos position, n int) []region.Ptr {
	for n > 0 {
		in := c.tr.cache.find(&s.probe, pos)
		if in == nil {
			return ptrs
		}
		from, last := in.index(pos), c.lastChild(in)
		step, edge := 1, len(in.children)-1
		if c.reverse {
			step, edge = -1, 0
		}
		for i := from; n > 0 && i >= 0 && i < len(in.children) && (last-i)*step >= 0; i += step { // until i is beyond last
			if in.children[i].IsNil() {
				return ptrs
			}
			ptrs, n = append(ptrs, in.children[i]), n-1
		}
		if last != edge {
			return ptrs // the range ends in this node
		}
		if c.reverse {
			pos = position{key: in.low(), side: before}
		} else {
			pos = position{key: in.high()}
		}
		if len(pos.key) == 0 || !c.reachesBeyond(pos.key) {
			return ptrs
		}
	}
	return ptrs
}

// lastChild returns the index of the child of a cached node in which the range ends. If the range
// ends beyond the node, it returns the index of the node's last child in the cursor's direction.
func (c *Cursor) lastChild(in *inner) int {
	if c.reverse {
		if at := (position{key: c.lo}); at.between(in.low(), in.high()) {
			return in.index(at)
		}
		return 0
	}
	if to := (position{key: c.hi, side: before}); len(c.hi) > 0 && to.between(in.low(), in.high()) {
		return in.index(to)
	}
	return len(in.children) - 1
}

// reachesBeyond reports whether the range goes on beyond a fence ahead of the cursor.
func (c *Cursor) reachesBeyond(fence []byte) bool {
	if c.reverse {
		return bytes.Compare(fence, c.lo) > 0
	}
	return len(c.hi) == 0 || bytes.Compare(fence, c.hi) < 0
}

// readRows requests the rows of the next entries, and together with them the leaves that come after:
// both then cost one round trip.
func (c *Cursor) readRows() {
	a := &c.ahead
	first, err := c.lf.node.ptr(c.entry())
	isHere := err != nil || !c.isElsewhere(first)
	if isHere && a.rows < rowsAhead {
		// Requesting a few rows of this machine's own memory costs about as much as it saves. Skip
		// these; the next call requests many, which pays off.
		a.asked, a.rows = a.rows, rowsAhead
		return
	}
	ptrs := c.rowsOf(c.p.ahead[:0], c.lf.node, c.entry())
	used := 0 // leaves of a.leaves whose rows are among ptrs
	for ; len(ptrs) > 0 && len(ptrs) < a.rows && c.isElsewhere(ptrs[len(ptrs)-1]); used++ {
		if used == len(a.leaves) {
			next, ok := c.collect()
			if !ok {
				break
			}
			a.leaves = append(a.leaves, next)
		}
		lf := a.leaves[used].node
		start := 0
		if c.reverse {
			start = lf.count() - 1
		}
		ptrs = c.rowsOf(ptrs, lf, start)
	}
	rows := len(ptrs)
	readsElsewhere := rows > 0 && (c.isElsewhere(ptrs[rows-1]) || c.isElsewhere(c.lf.src.Ptr))
	if used == len(a.leaves) && readsElsewhere {
		ptrs = c.addLeaves(ptrs)
	}
	n := c.t.ReadAhead(ptrs)
	c.p.ahead = ptrs
	a.asked = max(1, min(n, rows))
	if n > rows {
		a.next = append(a.next, ptrs[rows:n]...)
	}
	a.rows = rowsAhead
}

// rowsOf appends the pointers of a leaf's entries in the range, in the cursor's direction and
// beginning with entry number first, until there are as many as are read at a time.
func (c *Cursor) rowsOf(ptrs []region.Ptr, n node, first int) []region.Ptr {
	step, last := 1, n.count()-1
	switch {
	case c.reverse:
		step, last = -1, 0
		if bytes.Compare(n.low(), c.lo) < 0 && n.covers(c.lo) {
			last, _ = n.search(c.lo)
		}
	case len(c.hi) > 0 && n.covers(c.hi):
		last, _ = n.search(c.hi)
		last--
	}
	for i := first; (last-i)*step >= 0 && len(ptrs) < c.ahead.rows; i += step { // until i is beyond last
		p, err := n.ptr(i)
		if err != nil {
			break // Next reports the error
		}
		ptrs = append(ptrs, p)
	}
	return ptrs
}

// addLeaves appends to ptrs the leaves that hold the entries after those just requested. It appends
// none if leaves are requested already, or if an open-ended scan has just begun: its user may stop
// soon.
func (c *Cursor) addLeaves(ptrs []region.Ptr) []region.Ptr {
	a := &c.ahead
	end := c.hi // the bound at which the scan ends
	if c.reverse {
		end = c.lo
	}
	isEndless := len(end) == 0
	if len(a.next) > 0 || (isEndless && a.rows < rowsAhead) {
		return ptrs
	}
	lf := c.lf.node
	if len(a.leaves) > 0 {
		lf = a.leaves[len(a.leaves)-1].node
	}
	pos := position{key: lf.high()}
	if c.reverse {
		pos = position{key: lf.low(), side: before}
	}
	if len(pos.key) == 0 || !c.reachesBeyond(pos.key) {
		return ptrs
	}
	s := c.tr.scratch()
	defer s.free()
	return c.path(ptrs, s, pos, leavesOf(rowsAhead, c.lf.count()))
}

// isElsewhere reports whether another machine is the primary of an object.
func (c *Cursor) isElsewhere(p region.Ptr) bool { return !c.tr.m.IsPrimary(p.Addr) }
