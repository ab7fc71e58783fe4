package btree

import (
	"bytes"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// change is a transaction's latest operation on a key, not yet committed.
type change struct {
	key     []byte
	val     value
	deleted bool
	// leaf is the leaf of the key, if it was known when the change was made; otherwise nil. Prepare
	// tries it first: it has been read or prefetched, so it is probably in the processor's cache.
	leaf region.Ptr
}

// treeState says what a transaction has done to the tree itself.
type treeState uint8

const (
	existing treeState = iota
	created            // this transaction has created the tree: nothing of it is committed
	undone             // the tree was created and rolled back
)

// pending is the state of one transaction in one tree: its operations, in key order, until Prepare
// applies them, and its questions. It returns to a pool when the transaction ends.
type pending struct {
	tr       *Tree
	state    treeState
	deferred bool // registered with the transaction, to be prepared at its commit
	changes  []*change
	// edits counts the keys added to and removed from changes: both change the indexes of others.
	edits uint64
	// serial counts the transactions that this memory has served.
	serial uint64

	keys    []byte // chunk that keys are copied to
	slab    slab[change]
	points  slab[keyQuestion]
	ranges  slab[rangeQuestion]
	absents slab[absentQuestion]
	latest  *keyQuestion // the latest question of points
	// many holds questions of the latest GetMany, in key order: all of them if the keys were in
	// ascending order. A later Get of one of these keys finds its answer there.
	many []*keyQuestion
	// ahead is memory for the pointers to objects that a cursor is about to read ahead.
	ahead  []region.Ptr
	editor editor
	// release is recycle as a value, so that registering it allocates nothing.
	release func()
}

// slab allocates values whose addresses do not change, a chunk at a time.
type slab[T any] struct{ chunk []T }

const slabCount = 16

func (s *slab[T]) next() *T {
	if len(s.chunk) == cap(s.chunk) {
		s.chunk = make([]T, 0, slabCount)
	}
	s.chunk = s.chunk[:len(s.chunk)+1]
	return &s.chunk[len(s.chunk)-1]
}

// reset keeps the last chunk for the next user.
func (s *slab[T]) reset() {
	clear(s.chunk)
	s.chunk = s.chunk[:0]
}

const (
	keyChunkBytes   = 1 << 10
	changesKeepMost = 1 << 10
)

var pendings sync.Pool // a pool of *pending

// pendingOf returns t's pending state for the tree, or nil if t has not used the tree.
func (tr *Tree) pendingOf(t *txn.Tx) *pending {
	p, _ := t.Local(tr.local).(*pending)
	return p
}

// pend returns t's pending state for the tree, and creates it if t has not used the tree.
func (tr *Tree) pend(t *txn.Tx) *pending {
	if p := tr.pendingOf(t); p != nil {
		return p
	}
	p, _ := pendings.Get().(*pending)
	if p == nil {
		p = new(pending)
		p.release = p.recycle
	}
	p.tr = tr
	t.SetLocal(tr.local, p)
	t.OnEnd(p.release)
	return p
}

// recycle empties p and returns it to the pool.
func (p *pending) recycle() {
	p.tr, p.state, p.deferred = nil, existing, false
	p.serial++
	clear(p.changes)
	p.changes = p.changes[:0]
	if cap(p.changes) > changesKeepMost {
		p.changes = nil
	}
	p.keys = p.keys[:0]
	p.slab.reset()
	p.points.reset()
	p.latest = nil
	clear(p.many[:cap(p.many)]) // those of earlier GetManys, too
	p.many = p.many[:0]
	if cap(p.many) > changesKeepMost {
		p.many = nil
	}
	p.ranges.reset()
	p.absents.reset()
	pendings.Put(p)
}

// keep copies a key into memory that lasts as long as the transaction.
func (p *pending) keep(key []byte) []byte {
	if len(key) > cap(p.keys)-len(p.keys) {
		p.keys = make([]byte, 0, max(keyChunkBytes, len(key)))
	}
	from := len(p.keys)
	p.keys = append(p.keys, key...)
	return p.keys[from:len(p.keys):len(p.keys)]
}

// prepareIn registers p once, so that t calls Prepare when it commits.
func (p *pending) prepareIn(t *txn.Tx) {
	if !p.deferred {
		p.deferred = true
		t.Defer(p)
	}
}

// search finds the first change at or after key, and whether it is a change of key.
func (p *pending) search(key []byte) (int, bool) {
	// Most bulk changes insert ascending keys: look at the end first.
	if n := len(p.changes); n == 0 || bytes.Compare(p.changes[n-1].key, key) < 0 {
		return n, false
	}
	return slices.BinarySearchFunc(p.changes, key, func(c *change, k []byte) int { return bytes.Compare(c.key, k) })
}

// find returns the change of key, or nil.
func (p *pending) find(key []byte) *change {
	if i, ok := p.search(key); ok {
		return p.changes[i]
	}
	return nil
}

// set records an operation on key: it gets value v, or is deleted. It replaces the transaction's
// earlier operation on key, which a rollback past this point brings back.
func (p *pending) set(t *txn.Tx, key []byte, v value, deleted bool) {
	p.prepareIn(t)
	i, found := p.search(key)
	if found {
		c := p.changes[i]
		old := *c
		c.val, c.deleted = v, deleted
		t.OnRollback(func() { *c = old })
		return
	}
	c := p.slab.next()
	*c = change{key: p.keep(key), val: v, deleted: deleted, leaf: p.leafOf(t, key)}
	p.changes = slices.Insert(p.changes, i, c)
	p.edits++
	t.OnRollback(func() { p.take(c) })
}

// leafOf returns the leaf of key if it can be known without a read: from the latest question, or from
// the cache of inner nodes. In the second case it also prefetches the leaf. Otherwise it returns nil.
func (p *pending) leafOf(t *txn.Tx, key []byte) region.Ptr {
	if q := p.latest; q != nil && bytes.Equal(q.key, key) {
		return q.src[0].Ptr
	}
	if p.state != existing {
		return region.Ptr{}
	}
	return p.tr.prefetch(t, key)
}

// take removes a change.
func (p *pending) take(c *change) {
	if i, ok := p.search(c.key); ok {
		p.changes = slices.Delete(p.changes, i, i+1)
		p.edits++
	}
}
