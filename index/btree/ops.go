package btree

import (
	"bytes"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Get returns what key leads to, as t sees it: its own operations first. That
// the key leads there, or nowhere, becomes part of what t has read.
func (tr *Tree) Get(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	if len(key) > MaxKeyBytes {
		return region.Ptr{}, false, ErrKeyTooLong
	}
	p := tr.pend(t)
	if c := p.find(key); c != nil {
		v, err := c.val.ptr()
		return v, !c.deleted, err
	}
	return p.ask(t, key, false)
}

// Has reports whether key leads anywhere, as t sees it. Only that becomes part
// of what t has read: unlike one that Got the key, a transaction does not abort
// when the key comes to lead somewhere else.
func (tr *Tree) Has(t *txn.Tx, key []byte) (bool, error) {
	if len(key) > MaxKeyBytes {
		return false, ErrKeyTooLong
	}
	p := tr.pend(t)
	if c := p.find(key); c != nil {
		return !c.deleted, nil
	}
	_, found, err := p.ask(t, key, true)
	return found, err
}

// Insert has key lead to v from the moment that t commits. It fails with
// ErrExists if key leads anywhere already, committed or by t's own operations.
// That it does not becomes part of what t has read: of two transactions that
// insert one key, one commits.
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

// Put has key lead to v from the moment that t commits, wherever it led before.
// It reads nothing: of two transactions that put one key, the later wins.
func (tr *Tree) Put(t *txn.Tx, key []byte, v region.Ptr) error {
	if len(key) > MaxKeyBytes {
		return ErrKeyTooLong
	}
	tr.pend(t).set(t, key, encodePtr(v), false)
	return nil
}

// Delete has key lead nowhere from the moment that t commits, and reports
// whether it led somewhere. What it found becomes part of what t has read.
func (tr *Tree) Delete(t *txn.Tx, key []byte) (bool, error) {
	_, found, err := tr.Get(t, key)
	if err != nil || !found {
		return false, err
	}
	tr.pend(t).set(t, key, value{}, true)
	return true, nil
}

// Fetch has the processor fetch the leaf in which t is going to look for key, and
// does not wait for it. Who has several keys to look for asks for all of them
// first, and waits for memory about as long as for one. It does nothing while the
// way to the leaf is not cached, or where another machine is its primary.
func (tr *Tree) Fetch(t *txn.Tx, key []byte) { tr.fetch(t, key) }

// fetch is Fetch, and returns the leaf if one is known.
func (tr *Tree) fetch(t *txn.Tx, key []byte) region.Ptr {
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

// ask looks key up in what is committed, and remembers question and answer.
func (p *pending) ask(t *txn.Tx, key []byte, existence bool) (region.Ptr, bool, error) {
	if p.state != existing {
		return region.Ptr{}, false, nil
	}
	if q := p.latest; q != nil && bytes.Equal(q.key, key) && (existence || !q.existence) {
		return q.val, q.found, nil // that answer has to hold in any case
	}
	s := p.tr.scratch()
	defer s.free()
	lf, err := p.tr.seek(s, s, t, position{key: key})
	if err != nil {
		return region.Ptr{}, false, err
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
