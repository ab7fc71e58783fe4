package btree

import (
	"bytes"
	"iter"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Cursor walks the entries of a range in ascending or descending key order, as its transaction sees
// them: the committed entries, one leaf at a time, merged with the transaction's own operations.
// Operations that the transaction makes while the cursor is open count if their keys are still ahead
// of the cursor.
//
// The transaction has read exactly the stretch of keys that the cursor has passed: if an entry in
// that stretch is added, removed or changed before the transaction commits, the transaction aborts
// (no phantoms). Changes beyond the stretch do not matter.
type Cursor struct {
	tr      *Tree
	t       *txn.Tx
	p       *pending
	serial  uint64 // p.serial at the beginning: it differs once the transaction has ended
	lo, hi  []byte // an empty hi is plus infinity
	reverse bool
	// existence says that only the keys count as read, not their values.
	existence bool
	only      func(*txn.Fresh, region.Ptr) (bool, error) // see Only
	done      bool
	err       error

	loaded bool // the cursor has arrived at lf and reads it
	lf     leaf
	slot   int            // the next slot; in reverse the slot after that
	q      *rangeQuestion // records what was read of lf; nil before the first leaf

	key   []byte // the key of the next slot
	last  []byte // the key last passed
	moved bool   // last is set
	// change is the index in p.changes of the transaction's next own change; in
	// reverse the index after that. It is valid while p.edits equals edits.
	change int
	edits  uint64

	ahead lookAhead
}

// Scan returns a cursor over the keys in [lo, hi); nil is an open end. It reads
// nothing before the first Next.
func (tr *Tree) Scan(t *txn.Tx, lo, hi []byte, reverse bool) *Cursor {
	p := tr.pend(t)
	c := &Cursor{tr: tr, t: t, p: p, serial: p.serial, reverse: reverse}
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		c.done = true
		return c
	}
	c.lo, c.hi = p.keep(lo), p.keep(hi)
	c.edits = p.edits - 1 // not p.edits, so that the first use of change sets it
	return c
}

// ScanPrefix is like Scan, for the keys that begin with prefix.
func (tr *Tree) ScanPrefix(t *txn.Tx, prefix []byte, reverse bool) *Cursor {
	return tr.Scan(t, prefix, prefixEnd(prefix), reverse)
}

// prefixEnd returns the least key above all keys that begin with prefix, or nil if there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			hi := bytes.Clone(prefix[:i+1])
			hi[i]++
			return hi
		}
	}
	return nil
}

// KeysOnly makes only the keys part of the transaction's reads, and not their values: see Has. Call
// it before the first Next; it returns c.
func (c *Cursor) KeysOnly() *Cursor {
	c.existence = true
	return c
}

// Only makes the transaction depend on only some entries: those for whose values matters returns true. Other entries
// may be added and removed. Next still returns all. matters is called when the transaction is validated; for one value
// it must always return the same. Call Only before the first Next; it returns c.
func (c *Cursor) Only(matters func(*txn.Fresh, region.Ptr) (bool, error)) *Cursor {
	c.only = matters
	return c
}

// All yields the entries that Next would return. It ends early at an error, which Err then returns. A
// key is valid until the following iteration. After a break the cursor can go on where it was.
func (c *Cursor) All() iter.Seq2[[]byte, region.Ptr] {
	return func(yield func([]byte, region.Ptr) bool) {
		for {
			key, v, ok, err := c.Next()
			if err != nil || !ok || !yield(key, v) {
				return
			}
		}
	}
}

// Err returns the error that has ended the scan, nil if there is none.
func (c *Cursor) Err() error { return c.err }

// Next returns the next entry, or ok false at the end. The key is valid until
// the following call. Next merges the leaf's entries with the transaction's own
// changes: it passes whichever key comes first; at equal keys the change counts.
func (c *Cursor) Next() (key []byte, v region.Ptr, ok bool, err error) {
	if c.err == nil && !c.done && c.p.serial != c.serial {
		c.err = txn.ErrDone
	}
	for c.err == nil && !c.done {
		if !c.loaded {
			if c.err = c.load(); c.err != nil {
				break
			}
		}
		own := c.ownChange()
		inLeaf := c.nextKey()
		order := 0 // negative if the leaf's entry comes before the own change
		switch {
		case inLeaf && own != nil:
			order = bytes.Compare(c.key, own.key)
			if c.reverse {
				order = -order
			}
		case inLeaf:
			order = -1
		case own != nil && c.reachesInLeaf(own.key):
			order = 1
		default:
			c.leave()
			continue
		}
		if inLeaf && c.ahead.rows > 0 && c.ahead.asked == 0 {
			c.readRows()
		}
		if order < 0 {
			val := c.lf.value(c.entry())
			c.pass()
			c.swap()
			v, c.err = val.ptr()
			return c.last, v, c.err == nil, c.err
		}
		if order == 0 {
			c.pass() // the own change replaces the leaf's entry
		}
		c.passOwn(own)
		if !own.deleted {
			v, c.err = own.val.ptr()
			return own.key, v, c.err == nil, c.err
		}
	}
	return nil, region.Ptr{}, false, c.err
}

// load reads the leaf at which the cursor has arrived, and begins the question that records what the
// cursor reads there.
func (c *Cursor) load() error {
	c.loaded = true
	if c.p.state != existing {
		return nil // nothing is committed: the cursor sees own operations only
	}
	s := c.tr.scratch()
	defer s.free()
	pos := c.position()
	lf, ok := c.takeLeaf(pos)
	if !ok {
		c.askLeaves(s, pos)
		var err error
		if lf, err = c.tr.seek(s, s, c.t, pos); err == nil {
			err = lf.checkSlots()
		}
		if err != nil {
			return err
		}
	}
	c.lf = lf
	q := c.p.ranges.next()
	*q = rangeQuestion{tr: c.tr, n: lf.node, reverse: c.reverse, existence: c.existence, only: c.only, from: pos.key}
	q.first[0] = lf.src
	q.srcs = q.first[:]
	c.slot = lf.count()
	if pos.side != end {
		c.slot, _ = lf.search(pos.key)
	}
	q.slot = c.slot
	c.q = q
	c.t.Expect(q)
	return nil
}

// position returns the position of the next leaf: at the bound where the scan begins, or beyond the
// current leaf.
func (c *Cursor) position() position {
	switch {
	case !c.reverse && c.q == nil:
		return position{key: c.lo}
	case !c.reverse:
		return position{key: c.lf.high()}
	case c.q != nil:
		return position{key: c.lf.low(), side: before}
	case len(c.hi) > 0:
		return position{key: c.hi, side: before}
	}
	return position{side: end}
}

// entry returns the slot of the next entry in the leaf.
func (c *Cursor) entry() int {
	if c.reverse {
		return c.slot - 1
	}
	return c.slot
}

// nextKey sets key to the key of the leaf's next entry. It returns false if the leaf has no further
// entry in the range.
func (c *Cursor) nextKey() bool {
	if c.q == nil {
		return false
	}
	i := c.entry()
	if i < 0 || i >= c.lf.count() {
		return false
	}
	c.key = c.lf.appendKey(c.key[:0], i)
	return c.inRange(c.key)
}

// inRange reports whether key is before the bound at which the scan ends.
func (c *Cursor) inRange(key []byte) bool {
	if c.reverse {
		return bytes.Compare(key, c.lo) >= 0
	}
	return len(c.hi) == 0 || bytes.Compare(key, c.hi) < 0
}

// reachesInLeaf reports whether the scan, which has not reached key yet, will reach it within the
// current leaf. Without a leaf it returns true.
func (c *Cursor) reachesInLeaf(key []byte) bool {
	if c.q == nil {
		return true
	}
	if c.reverse {
		return bytes.Compare(key, c.lf.low()) >= 0
	}
	high := c.lf.high()
	return len(high) == 0 || bytes.Compare(key, high) < 0
}

// pass moves beyond the leaf's next entry.
func (c *Cursor) pass() {
	if c.reverse {
		c.slot--
	} else {
		c.slot++
	}
	c.q.count++
	c.q.reach = toEntry
	c.ahead.asked = max(0, c.ahead.asked-1)
}

// swap makes c.key, the key of the entry just passed, the last key passed (c.last).
func (c *Cursor) swap() {
	c.key, c.last = c.last, c.key
	c.moved = true
}

// passOwn moves beyond the transaction's own next change.
func (c *Cursor) passOwn(own *change) {
	c.last = append(c.last[:0], own.key...)
	c.moved = true
	if c.reverse {
		c.change--
	} else {
		c.change++
	}
	if c.q != nil {
		c.q.to, c.q.reach = own.key, toKey
	}
}

// leave ends the current leaf: either the scan is done, or it goes on with the next leaf.
func (c *Cursor) leave() {
	if c.q == nil {
		c.done = true
		return
	}
	q := c.q
	if c.reverse {
		q.to = c.lf.low()
		c.done = bytes.Compare(q.to, c.lo) <= 0
		if c.done {
			q.to = c.lo
		}
	} else {
		q.to = c.lf.high()
		c.done = len(q.to) == 0 || (len(c.hi) > 0 && bytes.Compare(q.to, c.hi) >= 0)
		if c.done {
			q.to = c.hi
		}
	}
	q.reach = toBoundary
	c.loaded = false
}

// ownChange returns the transaction's own next change in the range, or nil.
func (c *Cursor) ownChange() *change {
	if c.edits != c.p.edits {
		c.find()
	}
	i := c.change
	if c.reverse {
		i--
	}
	if i < 0 || i >= len(c.p.changes) || !c.inRange(c.p.changes[i].key) {
		return nil
	}
	return c.p.changes[i]
}

// find sets change again after changes were added or removed.
func (c *Cursor) find() {
	c.edits = c.p.edits
	found := false
	switch {
	case c.moved:
		c.change, found = c.p.search(c.last)
	case !c.reverse:
		c.change, _ = c.p.search(c.lo)
	case len(c.hi) > 0:
		c.change, _ = c.p.search(c.hi)
	default:
		c.change = len(c.p.changes)
	}
	if found && !c.reverse {
		c.change++ // skip the key last passed; in reverse the next change is c.change-1, which comes before that key
	}
}
