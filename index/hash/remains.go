package hash

import (
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// remains visits the rest of a shard that is being destroyed, and of the shards split from it:
// their headers, the buckets that Destroy has not freed yet, and the objects that these lead
// to. It does not check that keys are where a lookup would find them, because their neighbours
// may have been freed.
func (c *checker) remains(s *shard, h *header) error {
	if err := c.v.Node(s.header); err != nil {
		return err
	}
	for i := h.initialDepth; i < h.childrenEnd(); i++ {
		if h.children[i].header.IsNil() {
			continue // freed already
		}
		child := h.childShard(i)
		ch, err := c.tb.refresh(c.o, child)
		if err == nil {
			err = c.remains(child, ch)
		}
		if err != nil {
			return err
		}
	}
	left := c.o.buckets + 1 // the last home has a neighbour, too
	if h.state == destroying {
		left = h.cursor
	}
	for i := range left {
		err := c.ctx.Err()
		if err == nil {
			err = c.bucket(s, i)
		}
		if err != nil {
			return fmt.Errorf("shard %#x/%d, bucket %d, of a table that is being destroyed: %w", s.prefix, s.initialDepth, i, err)
		}
	}
	return nil
}

// bucket visits a bucket, the blocks of its chain, and all pairs in them.
func (c *checker) bucket(s *shard, i int) error {
	w := walk{tb: c.tb, pk: reader{c.tb}, first: s.first.Element(i), lay: &c.o.layout}
	b, err := w.peek(w.first)
	p, at, more := w.lay.bucket(b), w.first, true
	for ; err == nil && more; p, at, more, err = w.block(p) { // the bucket itself is the first page
		if err := c.page(&w, p, at); err != nil {
			return err
		}
	}
	return err
}

// page visits a bucket or block and its pairs.
func (c *checker) page(w *walk, p page, at region.Ptr) error {
	if err := p.valid(); err != nil {
		return err
	}
	if err := c.v.Node(at); err != nil {
		return err
	}
	for k := range p.slots {
		sl := p.slot(k)
		if !sl.used() {
			continue
		}
		key, value := sl.key(), sl.value()
		if sl.outside() {
			_, ptr, err := sl.pair()
			if err == nil {
				key, value, err = w.pair(sl)
			}
			if err == nil {
				err = c.v.Node(ptr)
			}
			if err != nil {
				return err
			}
		}
		if err := c.v.Pair(key, value); err != nil {
			return err
		}
	}
	return nil
}
