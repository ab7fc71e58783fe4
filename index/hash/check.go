package hash

import (
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// A Visitor holds the functions that Check calls. Each may be nil.
type Visitor struct {
	// Pair is called with each pair.
	Pair func(key, value []byte) error
	// Node is called once with each object that belongs to the table: anchor,
	// headers, buckets, overflow blocks, and pairs that are objects of their own.
	Node func(region.Ptr) error
	// Destroying says that Destroy may have begun to take the table apart: then Check visits the
	// rest. Without it, Check reports a table that is being destroyed as corrupt.
	Destroying bool
}

// Check walks the whole table and returns an error for every violation: each key must be in its
// neighbourhood or chain, and only once; joint and chain versions must be consistent, chains must
// end and have no holes, and depths must equal those in the headers. It may run while the table is
// in use; then it may miss violations, but reports no false ones.
func (tb *Table) Check(ctx context.Context, v Visitor) error {
	if v.Pair == nil {
		v.Pair = func(_, _ []byte) error { return nil }
	}
	if v.Node == nil {
		v.Node = func(region.Ptr) error { return nil }
	}
	o, err := tb.open()
	if err != nil {
		return err
	}
	if err := v.Node(tb.anchor); err != nil {
		return err
	}
	c := checker{ctx: ctx, tb: tb, o: o, v: v}
	return c.shard(o.first(), o.buckets)
}

type checker struct {
	ctx context.Context
	tb  *Table
	o   *opened
	v   Visitor
}

// shard checks a shard and the shards split from it. live is the number of homes in use, which are
// the shard's first.
func (c *checker) shard(s *shard, live int) error {
	h, err := c.tb.refresh(c.o, s)
	if err != nil {
		return err
	}
	switch {
	case h.state == destroying && c.v.Destroying:
		return c.remains(s, h)
	case h.state == destroying:
		return fmt.Errorf("%w: shard %#x/%d is being destroyed", ErrCorrupt, h.prefix, h.initialDepth)
	}
	if err := c.v.Node(s.header); err != nil {
		return err
	}
	for i := range c.o.buckets {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.home(s, h, i, i < live); err != nil {
			return err
		}
	}
	if err := c.v.Node(s.first.Element(c.o.buckets)); err != nil {
		return err
	}
	for i := h.initialDepth; i < h.childrenEnd(); i++ {
		child, err := c.tb.child(c.o, s, i)
		if err != nil {
			return err
		}
		live := c.o.buckets
		if i == h.depth { // the split is in progress
			live = h.cursor
		}
		if err := c.shard(child, live); err != nil {
			return err
		}
	}
	return nil
}

// home checks one home. If it finds a violation it checks again, because a change may have come
// in between.
func (c *checker) home(s *shard, h *header, i int, live bool) error {
	pairs, nodes, err := c.homeOnce(s, h, i, live)
	for try := 0; err != nil && try < asksMax; try++ {
		fresh, failed := c.tb.refresh(c.o, s)
		if failed != nil {
			return failed
		}
		if fresh.state != filling && h.state == filling { // the split has ended: all homes are in use
			live = true
		}
		h = fresh
		pairs, nodes, err = c.homeOnce(s, h, i, live)
	}
	if err != nil {
		return fmt.Errorf("shard %#x/%d, bucket %d: %w", s.prefix, s.initialDepth, i, err)
	}
	for _, p := range nodes {
		err = errors.Join(err, c.v.Node(p))
	}
	for _, p := range pairs {
		err = errors.Join(err, c.v.Pair(p.key, p.value))
	}
	return err
}

// homeOnce checks one home, as header h says it should be. It returns the home's pairs, and the objects
// of its bucket, chain and pairs.
func (c *checker) homeOnce(s *shard, h *header, i int, live bool) (pairs []pair, nodes []region.Ptr, err error) {
	w := walk{tb: c.tb, pk: reader{c.tb}, first: s.first.Element(i), lay: &c.o.layout}
	home, err := w.home()
	if err != nil {
		return nil, nil, asDestroyed(err)
	}
	if err := home.valid(); err != nil {
		return nil, nil, err
	}
	nodes = append(nodes, w.first)
	depth, used := home.depth()
	hasWrongDepth := used && depth != h.depthOf(i)
	if used != live || hasWrongDepth {
		return nil, nil, fmt.Errorf("%w: in use %v, depth %d, should be %v, %d", ErrCorrupt, used, depth, live, h.depthOf(i))
	}
	if !used {
		depth = 0
	}
	seen := map[string]bool{}
	err = w.visitHome(home, func(sl slot, key, value []byte) error {
		if err := c.pair(s, i, depth, sl, key, seen); err != nil {
			return err
		}
		pairs = append(pairs, pair{key, value})
		if sl.outside() {
			_, ptr, _ := sl.pair()
			nodes = append(nodes, ptr)
		}
		return nil
	})
	if err == nil {
		nodes, err = c.chain(&w, home, nodes)
	}
	return pairs, nodes, err
}

// pair checks that a pair is where a lookup would look for it.
func (c *checker) pair(s *shard, i, depth int, sl slot, key []byte, seen map[string]bool) error {
	h := sum(c.o.seed, key)
	mayBeInline := c.o.inline(len(key), 0)
	switch {
	case bucketOf(h, c.o.buckets) != i || !s.covers(h, depth):
		return fmt.Errorf("%w: key %q has another home", ErrCorrupt, key)
	case sl.control&0xff != tagOf(h) || sl.hash(c.o.seed) != h || (!sl.outside() && !mayBeInline):
		return fmt.Errorf("%w: key %q: control word %#x does not fit", ErrCorrupt, key, sl.control)
	case seen[string(key)]:
		return fmt.Errorf("%w: key %q is there twice", ErrCorrupt, key)
	}
	seen[string(key)] = true
	return nil
}

// chain checks that all blocks but the last are full, and the last not empty.
func (c *checker) chain(w *walk, home page, nodes []region.Ptr) ([]region.Ptr, error) {
	hasRoom := false // the block before is not full
	for p := home; ; {
		b, ptr, more, err := w.block(p)
		if err != nil || !more {
			return nodes, err
		}
		if err := b.valid(); err != nil {
			return nodes, err
		}
		if hasRoom || b.usedSlots() == 0 {
			return nodes, fmt.Errorf("%w: hole in a chain, before or in block %v", ErrCorrupt, ptr)
		}
		hasRoom = b.usedSlots() < blockSlots
		nodes = append(nodes, ptr)
		p = b
	}
}

// depthOf returns the depth of bucket i of the shard, if it is in use.
func (h *header) depthOf(i int) int {
	if h.state == splitting && i < h.cursor {
		return h.depth + 1
	}
	return h.depth
}
