package btree

import (
	"bytes"
	"slices"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Get returns the value of key as t sees it, including t's own operations. The answer becomes part of
// t's reads: t aborts if the committed value, or its absence, changes before t commits.
func (tr *Tree) Get(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	if len(key) > MaxKeyBytes {
		return region.Ptr{}, false, ErrKeyTooLong
	}
	return tr.pend(t).get(t, key, false)
}

// Has reports whether key has a value, as t sees it. Only this becomes part of t's reads: unlike after
// Get, t does not abort if the key gets another value.
func (tr *Tree) Has(t *txn.Tx, key []byte) (bool, error) {
	if len(key) > MaxKeyBytes {
		return false, ErrKeyTooLong
	}
	_, found, err := tr.pend(t).get(t, key, true)
	return found, err
}

// Insert adds key with value v; others see it once t commits. It fails with ErrExists if key has a
// value already, committed or by t's own operations. Insert reads like Has, so of two transactions
// that insert the same key only one commits.
func (tr *Tree) Insert(t *txn.Tx, key []byte, v region.Ptr) error {
	found, err := tr.Has(t, key)
	if err != nil {
		return err
	}
	if found {
		return ErrExists
	}
	tr.pend(t).set(t, key, encodePtr(v), false)
	return nil
}

// Put sets the value of key to v, whether or not it has one; others see it once t commits. Put reads
// nothing: of two transactions that put the same key both commit, and the later one wins.
func (tr *Tree) Put(t *txn.Tx, key []byte, v region.Ptr) error {
	if len(key) > MaxKeyBytes {
		return ErrKeyTooLong
	}
	tr.pend(t).set(t, key, encodePtr(v), false)
	return nil
}

// Delete removes key, and reports whether it had a value; others see it once t commits. Delete reads
// like Get.
func (tr *Tree) Delete(t *txn.Tx, key []byte) (bool, error) {
	_, found, err := tr.Get(t, key)
	if err != nil || !found {
		return false, err
	}
	tr.pend(t).set(t, key, value{}, true)
	return true, nil
}

// Drop removes key, whether or not it has a value; others see it once t commits. Drop reads nothing.
func (tr *Tree) Drop(t *txn.Tx, key []byte) error {
	if len(key) > MaxKeyBytes {
		return ErrKeyTooLong
	}
	tr.pend(t).set(t, key, value{}, true)
	return nil
}

// Fetch makes the processor fetch the leaf of key into its cache, without waiting. Callers with
// several keys should Fetch them all first: then they wait for memory about as long as for a single
// key. Fetch does nothing if the leaf's parent is not cached, or if another machine is the leaf's
// primary.
func (tr *Tree) Fetch(t *txn.Tx, key []byte) { tr.prefetch(t, key) }

// prefetch does the work of Fetch, and returns the leaf; nil if its parent is not cached.
func (tr *Tree) prefetch(t *txn.Tx, key []byte) region.Ptr {
	s := tr.scratch()
	defer s.free()
	pos := position{key: key}
	in := tr.cache.find(&s.probe, pos)
	if in == nil {
		return region.Ptr{}
	}
	p, err := in.child(pos)
	if err != nil {
		return region.Ptr{}
	}
	t.Fetch(p)
	return p
}

// get looks key up as t sees it. With existence, t depends only on whether key has a value.
func (p *pending) get(t *txn.Tx, key []byte, existence bool) (region.Ptr, bool, error) {
	v, found, known, err := p.known(key, existence)
	if known || err != nil {
		return v, found, err
	}
	s := p.tr.scratch()
	defer s.free()
	return p.askIn(t, s, &leaf{}, key, existence)
}

// known returns the value of key if t need not read the tree to know it: t has changed the key, or has
// asked for it in its latest question or its latest GetMany, or the tree is t's own. With existence,
// it is enough to know whether the key has a value.
func (p *pending) known(key []byte, existence bool) (v region.Ptr, found, known bool, err error) {
	if c := p.find(key); c != nil {
		v, err = c.val.ptr()
		return v, !c.deleted, true, err
	}
	if p.state != existing {
		return region.Ptr{}, false, true, nil
	}
	q := p.latest
	if q == nil || !bytes.Equal(q.key, key) {
		q = p.oneOfMany(key)
	}
	if q != nil && (existence || !q.existence) { // q has asked for as much
		return q.val, q.found, true, nil // the transaction depends on this answer already
	}
	return region.Ptr{}, false, false, nil
}

// oneOfMany returns the latest GetMany's question about key, nil if there is none.
func (p *pending) oneOfMany(key []byte) *keyQuestion {
	i, ok := slices.BinarySearchFunc(p.many, key, func(q *keyQuestion, key []byte) int { return bytes.Compare(q.key, key) })
	if !ok {
		return nil
	}
	return p.many[i]
}

// askIn looks key up in the committed tree, and remembers the question with its answer. If lf
// does not cover key, it first replaces lf by the leaf that does. It returns the key's value, and whether there
// is one.
func (p *pending) askIn(t *txn.Tx, s *scratch, lf *leaf, key []byte, existence bool) (region.Ptr, bool, error) {
	if lf.b == nil || !lf.covers(key) {
		var err error
		if *lf, err = p.tr.seek(s, s, t, position{key: key}); err != nil {
			return region.Ptr{}, false, err
		}
	}
	v, found, err := lf.get(key)
	if err != nil {
		return region.Ptr{}, false, err
	}
	q := p.points.next()
	*q = keyQuestion{tr: p.tr, key: p.keep(key), val: v, found: found, existence: existence, src: [1]txn.Source{lf.src}}
	t.Expect(q)
	p.latest = q
	return v, found, nil
}
