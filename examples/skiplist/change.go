package skiplist

import (
	"bytes"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A way is the place in the list where a transaction changes a key.
type way struct {
	// before are the last nodes before the key on each level.
	before [heightMax]region.Ptr
	// found is the key's node, and at the pointer to it; nil if the key is not
	// in the list.
	found node
	at    region.Ptr
}

// read returns the node at p as t sees it, and puts it into the read set.
func read(t *txn.Tx, p region.Ptr) (node, error) {
	b, err := t.Read(p)
	if err != nil {
		return nil, err
	}
	return parse(b)
}

// way finds the place of a key, by reads of the transaction.
func (l *List) way(t *txn.Tx, key []byte) (w way, err error) {
	at := l.head
	n, err := read(t, at)
	if err != nil {
		return w, err
	}
	for level := heightMax - 1; level >= 0; level-- {
		for {
			p, err := n.next(level)
			if err != nil {
				return w, err
			}
			if p.IsNil() {
				break
			}
			next, err := read(t, p)
			if err != nil {
				return w, err
			}
			order := bytes.Compare(next.key(), key)
			if order == 0 {
				w.found, w.at = next, p
			}
			if order >= 0 {
				break
			}
			at, n = p, next
		}
		w.before[level] = at
	}
	return w, nil
}

// Put makes value the value of key.
func (l *List) Put(t *txn.Tx, key, value []byte) error {
	if len(key) == 0 || len(key) > KeyBytesMax {
		return ErrKey
	}
	t.SetLocal(l, l)
	w, err := l.way(t, key)
	if err != nil {
		return err
	}
	if w.found != nil && w.found.fits(value) {
		b, err := t.Write(w.at)
		if err == nil {
			node(b).setValue(value)
		}
		return err
	}
	if w.found != nil {
		if err := w.unlink(t); err != nil {
			return err
		}
	}
	return w.link(t, l.head.Addr, key, value)
}

// Delete removes key and reports whether it was there.
func (l *List) Delete(t *txn.Tx, key []byte) (bool, error) {
	t.SetLocal(l, l)
	w, err := l.way(t, key)
	if err != nil || w.found == nil {
		return false, err
	}
	return true, w.unlink(t)
}

// link inserts a node for key, near hint.
func (w *way) link(t *txn.Tx, hint region.Addr, key, value []byte) error {
	height := heightOf(key)
	p, b, err := t.Alloc(nodeBytes(height, len(key), len(value)), hint)
	if err != nil {
		return err
	}
	n := format(b, height, key, value)
	for level := range height {
		before, err := t.Write(w.before[level])
		if err != nil {
			return err
		}
		next, err := node(before).next(level)
		if err != nil {
			return err
		}
		n.setNext(level, next)
		node(before).setNext(level, p)
	}
	return nil
}

// unlink removes the key's node.
func (w *way) unlink(t *txn.Tx) error {
	for level := range w.found.height() {
		next, err := w.found.next(level)
		if err != nil {
			return err
		}
		before, err := t.Write(w.before[level])
		if err != nil {
			return err
		}
		node(before).setNext(level, next)
	}
	return t.Free(w.at)
}
