package btree

import (
	"context"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// freeEntriesMax is the number of entries after which a transaction of Destroy frees no further leaf.
// Destroy halves it when the logs are too small for such a transaction.
const freeEntriesMax = 512

// Destroy frees the tree in transactions of bounded size. It calls visit, unless that is nil, for
// every entry, in the transaction that removes the entry, so that visit can free the object that the
// entry points to. If that transaction is run again, visit is called again.
//
// From the first transaction on, all operations on the tree fail with
// ErrDestroyed. If Destroy ends early, by an error or a crash, another call goes on
// where it stopped. On a tree that has been freed Destroy does nothing.
func (tr *Tree) Destroy(ctx context.Context, visit func(t *txn.Tx, key []byte, v region.Ptr) error) error {
	defer tr.cache.reset()
	if gone, err := tr.gone(); gone || err != nil {
		return err
	}
	if err := tr.m.Run(ctx, tr.markDestroying); err != nil {
		return err
	}
	for entries := freeEntriesMax; ; {
		done := false
		err := tr.m.Run(ctx, func(t *txn.Tx) (err error) {
			done, err = tr.freeLeaves(t, entries, visit)
			return err
		})
		switch {
		case errors.Is(err, outcome.ErrTooLarge) && entries > 0:
			entries /= 2
		case err != nil:
			return fmt.Errorf("btree: destroy %v: %w", tr.anchor, err)
		case done:
			return nil
		}
	}
}

// gone reports whether the anchor has been freed.
func (tr *Tree) gone() (bool, error) {
	s := tr.scratch()
	defer s.free()
	_, _, err := s.Peek(tr.anchor)
	if errors.Is(err, region.ErrFreed) {
		return true, nil
	}
	return false, err
}

// markDestroying marks in the anchor that the tree is being destroyed.
func (tr *Tree) markDestroying(t *txn.Tx) error {
	b, err := t.Write(tr.anchor)
	if err != nil {
		return err
	}
	a, err := parseAnchor(b, tr.id)
	if err != nil {
		return err
	}
	a.setDestroying()
	return nil
}

// step is one node on the left edge of a tree being destroyed.
type step struct {
	ptr region.Ptr
	node
}

// freeLeaves frees leaves from the left until it has freed more than the given number of entries,
// and then the inner nodes without children. It returns true when the anchor is freed, too.
func (tr *Tree) freeLeaves(t *txn.Tx, entries int, visit func(*txn.Tx, []byte, region.Ptr) error) (done bool, err error) {
	path, err := tr.leftEdge(t)
	if err != nil {
		return false, err
	}
	last := path[len(path)-1]
	freed := 0
	for ; freed < last.count() && entries >= 0; freed++ {
		p, err := last.node.ptr(freed)
		if err != nil {
			return false, err
		}
		n, err := tr.freeLeaf(t, p, visit)
		if err != nil {
			return false, err
		}
		entries -= n + 1 // an empty leaf counts, too
	}
	return tr.prune(t, path, freed)
}

// leftEdge reads the path from the anchor to the leftmost node of level 1.
func (tr *Tree) leftEdge(t *txn.Tx) ([]step, error) {
	b, err := t.Read(tr.anchor)
	if err != nil {
		return nil, err
	}
	a, err := parseAnchor(b, tr.id)
	if err != nil {
		return nil, err
	}
	path := []step{{tr.anchor, a.node}}
	for n := a.node; n.level() > 1 && n.count() > 0; {
		p, err := n.ptr(0)
		if err != nil {
			return nil, err
		}
		b, err := t.Read(p)
		if err != nil {
			return nil, err
		}
		child, err := parse(b, tr.id)
		if err == nil {
			err = child.checkSlots()
		}
		if err != nil {
			return nil, err
		}
		if child.level() != n.level()-1 {
			return nil, fmt.Errorf("%w: node %v of level %d below level %d", ErrCorrupt, p, child.level(), n.level())
		}
		n = child
		path = append(path, step{p, n})
	}
	return path, nil
}

// freeLeaf frees one leaf and returns how many entries it had.
func (tr *Tree) freeLeaf(t *txn.Tx, p region.Ptr, visit func(*txn.Tx, []byte, region.Ptr) error) (int, error) {
	b, err := t.Read(p)
	if err != nil {
		return 0, err
	}
	n, err := parse(b, tr.id)
	if err == nil {
		err = n.checkSlots()
	}
	if err != nil {
		return 0, err
	}
	var key []byte
	for i := 0; visit != nil && i < n.count(); i++ {
		v, err := n.ptr(i)
		if err != nil {
			return 0, err
		}
		key = n.appendKey(key[:0], i)
		if err := visit(t, key, v); err != nil {
			return 0, err
		}
	}
	return n.count(), t.Free(p)
}

// prune removes the freed children, which come first, from the last node of
// path. It frees every node that has no children left. The rest is no longer a
// search tree, but its left edge still leads to all of it.
func (tr *Tree) prune(t *txn.Tx, path []step, freed int) (done bool, err error) {
	for i := len(path) - 1; i >= 0; i-- {
		s := path[i]
		if s.count() <= freed {
			if err := t.Free(s.ptr); err != nil {
				return false, err
			}
			freed = 1 // this node, as a child of the one above
			continue
		}
		b, err := t.Write(s.ptr)
		if err != nil {
			return false, err
		}
		for n := (node{b}); freed > 0; freed-- {
			n.remove(0)
		}
		return false, nil
	}
	return true, nil
}
