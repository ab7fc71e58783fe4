package btree

import (
	"github.com/farmsql/farmsql/region"
)

// Skip passes up to n entries, as n calls of Next would, and returns how many there were: fewer than
// n only at the end of the range. What the cursor has passed is part of the transaction's reads,
// whether it was skipped or returned.
func (c *Cursor) Skip(n int) (skipped int, err error) {
	for skipped < n {
		_, passed, ok, err := c.many(nil, n-skipped, false)
		if skipped += passed; err != nil || !ok {
			return skipped, err
		}
	}
	return skipped, nil
}

// NextMany appends the values of up to n entries, which it passes, as n calls of Next would. It
// appends nothing only at the end of the range, or before an error.
func (c *Cursor) NextMany(values []region.Ptr, n int) ([]region.Ptr, error) {
	for taken := 0; taken < n; {
		var passed int
		var ok bool
		var err error
		if values, passed, ok, err = c.many(values, n-taken, true); err != nil || !ok {
			return values, err
		}
		taken += passed
	}
	return values, nil
}

// many passes some entries, n at most, and appends their values if they are wanted; ok is not set at
// the end of the range. Entries of the leaf before the next own change are passed together.
func (c *Cursor) many(values []region.Ptr, n int, wanted bool) (_ []region.Ptr, passed int, ok bool, err error) {
	if c.isReady() && c.ownChange() == nil {
		if values, passed = c.passMany(values, n, wanted); c.err != nil {
			return values, passed, false, c.err
		}
		if passed > 0 {
			return values, passed, true, nil
		}
	}
	_, v, ok, err := c.Next()
	if !ok || err != nil {
		return values, 0, false, err
	}
	if wanted {
		values = append(values, v)
	}
	return values, 1, true, nil
}

// isReady reports whether the cursor is at a leaf of a transaction that goes on.
func (c *Cursor) isReady() bool {
	return c.err == nil && !c.done && c.loaded && c.q != nil && c.p.serial == c.serial
}

// passMany passes up to n entries of the leaf, and appends their values if they are wanted.
func (c *Cursor) passMany(values []region.Ptr, n int, wanted bool) ([]region.Ptr, int) {
	step, first := 1, c.entry()
	count := min(n, c.lastEntry()-first+1)
	if c.reverse {
		step, count = -1, min(n, first-c.lastEntry()+1)
	}
	if count <= 0 {
		return values, 0
	}
	if wanted {
		for i := range count {
			v, err := c.lf.ptr(first + i*step)
			if err != nil {
				c.err = err
				return values, 0
			}
			values = append(values, v)
		}
	}
	c.slot += count * step
	c.q.count += count
	c.q.reach = toEntry
	c.ahead.asked = max(0, c.ahead.asked-count)
	c.last = c.lf.appendKey(c.last[:0], first+(count-1)*step)
	c.moved = true
	return values, count
}

// lastEntry returns the slot of the leaf's last entry in the range, in the cursor's direction. There may
// be none: then it is a slot before the leaf's first, or after its last.
func (c *Cursor) lastEntry() int {
	switch {
	case c.reverse && len(c.lo) > 0 && c.lf.covers(c.lo):
		first, _ := c.lf.search(c.lo)
		return first
	case c.reverse:
		return 0
	case len(c.hi) > 0 && c.lf.covers(c.hi):
		after, _ := c.lf.search(c.hi)
		return after - 1
	}
	return c.lf.count() - 1
}
