package hash

import (
	"context"
	"errors"

	"github.com/farmsql/farmsql/txn"
)

const (
	// destroyBuckets is how many buckets one transaction frees, destroyBlocks
	// how many blocks of one bucket's chain.
	destroyBuckets = 16
	destroyBlocks  = 64
)

// Destroy frees all objects of the table, in transactions of bounded size. It calls visit, unless
// that is nil, with every pair, within the transaction that frees the pair, so that visit can free
// the object that a value points to. If that transaction must be run again, visit is called again.
// The table must not be used any more.
//
// After a crash, or after ctx was cancelled, call Destroy again: it continues where it stopped. It
// does nothing if the table has been destroyed completely.
func (tb *Table) Destroy(ctx context.Context, visit func(t *txn.Tx, key, value []byte) error) error {
	if visit == nil {
		visit = func(*txn.Tx, []byte, []byte) error { return nil }
	}
	tb.opened.Store(nil) // open then checks whether the table still exists
	o, err := tb.open()
	if errors.Is(err, ErrDestroyed) {
		return nil
	}
	if err != nil {
		return err
	}
	d := destroyer{ctx: ctx, tb: tb, o: o, visit: visit}
	if err := d.shard(&shard{shardPtr: o.root}); err != nil {
		return err
	}
	defer tb.opened.Store(nil)
	return tb.m.Run(ctx, func(t *txn.Tx) error {
		if err := t.Free(o.root.header); err != nil {
			return err
		}
		return t.Free(tb.anchor)
	})
}

type destroyer struct {
	ctx   context.Context
	tb    *Table
	o     *opened
	visit func(t *txn.Tx, key, value []byte) error
}

// shard frees all of a shard but its header: first the shards that were split from it, then its
// buckets.
func (d *destroyer) shard(s *shard) error {
	h, err := d.markDestroying(s)
	if err != nil {
		return err
	}
	for i := h.initialDepth; i < h.depth; i++ {
		if h.children[i].header.IsNil() { // freed already
			continue
		}
		if err := d.shard(h.childShard(i)); err != nil {
			return err
		}
		if err := d.freeHeader(s, i); err != nil {
			return err
		}
	}
	for left := h.cursor; left > 0; {
		if left, err = d.buckets(s); err != nil {
			return err
		}
	}
	return nil
}

// update runs a transaction that changes the header of s.
func (d *destroyer) update(s *shard, change func(t *txn.Tx, h *header) error) (h *header, err error) {
	err = d.tb.m.Run(d.ctx, func(t *txn.Tx) error {
		b, err := t.Write(s.header)
		if err != nil {
			return err
		}
		if h, err = decodeHeader(b, &d.o.layout); err != nil {
			return err
		}
		if err := change(t, h); err != nil {
			return err
		}
		h.encode(b)
		return nil
	})
	return h, err
}

// markDestroying marks s as being destroyed, so that a split in progress does not continue.
func (d *destroyer) markDestroying(s *shard) (*header, error) {
	return d.update(s, func(_ *txn.Tx, h *header) error {
		if h.state != destroying {
			h.depth = h.childrenEnd()
			h.state, h.cursor = destroying, d.o.buckets+1
		}
		return nil
	})
}

// freeHeader frees the header of child i of s. The rest of that child has been freed.
func (d *destroyer) freeHeader(s *shard, i int) error {
	_, err := d.update(s, func(t *txn.Tx, h *header) error {
		if h.children[i].header.IsNil() {
			return nil
		}
		err := t.Free(h.children[i].header)
		h.children[i] = shardPtr{}
		return err
	})
	return err
}

// buckets frees the next buckets of s, from the last one down, and returns how many buckets are
// left.
func (d *destroyer) buckets(s *shard) (left int, err error) {
	h, err := d.update(s, func(t *txn.Tx, h *header) error {
		e := d.o.editor(t, s)
		for n := 0; n < destroyBuckets && h.cursor > 0; n++ {
			i := h.cursor - 1
			done, err := e.free(i, destroyBlocks, func(s slot) error { return d.pair(t, e, s) })
			if err != nil {
				return err
			}
			if !done {
				return nil // the rest of a long chain is for the next transaction
			}
			if err := t.Free(s.first.Element(i)); err != nil {
				return err
			}
			h.cursor = i
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return h.cursor, nil
}

// pair passes the key and value of a pair to the destroyer's visitor. It reads them first if they
// are outside of the slot.
func (d *destroyer) pair(t *txn.Tx, e *editor, s slot) error {
	key, value := s.key(), s.value()
	if s.outside() {
		var err error
		if key, value, err = e.pair(s); err != nil {
			return err
		}
	}
	return d.visit(t, key, value)
}
