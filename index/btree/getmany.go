package btree

import (
	"bytes"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// getsTogether is the largest number of keys whose leaves GetMany requests together.
const getsTogether = 128

// GetMany does the Gets of many keys together, so that their waiting for other machines and for
// memory overlaps. It calls visit for each key in their order. If the keys are in ascending order,
// neighbours that belong to one leaf share a read of the leaf. After an error, visit has been
// called for the keys before the one that failed.
//
// If the keys were in ascending order, a Get of one of them costs nothing until t's next GetMany. So a
// caller that will Get keys one by one may first look them up together, and ignore the answers.
func (tr *Tree) GetMany(t *txn.Tx, keys [][]byte, visit func(i int, v region.Ptr, ok bool)) error {
	p := tr.pend(t)
	s := tr.scratch()
	defer s.free()
	var lf leaf // where the last key was looked for
	p.many = p.many[:0]
	requested := 0 // the leaves of keys[:requested] have been requested
	for i, key := range keys {
		if len(key) > MaxKeyBytes {
			return ErrKeyTooLong
		}
		if i == requested {
			requested += p.readAhead(t, s, keys[i:])
		}
		v, ok, known, err := p.known(key, false)
		if !known && err == nil {
			v, ok, err = p.askIn(t, s, &lf, key, false)
			p.add(p.latest)
		}
		if err != nil {
			return err
		}
		visit(i, v, ok)
	}
	return nil
}

// readAhead requests the leaves where t is going to look for the first keys, where the cache leads
// to them. It returns the number of these keys.
func (p *pending) readAhead(t *txn.Tx, s *scratch, keys [][]byte) int {
	keys = keys[:min(len(keys), getsTogether)]
	if len(keys) == 1 || p.state != existing {
		return len(keys)
	}
	ptrs := p.ahead[:0]
	var last region.Ptr
	for _, key := range keys {
		var at region.Ptr // nil if the way there is not cached
		if in := p.tr.cache.find(&s.probe, position{key: key}); in != nil {
			at, _ = in.child(position{key: key}) // the search reports the error
		}
		if at == last {
			at = region.Ptr{} // a leaf in which keys follow each other is read once for all of them
		} else {
			last = at
		}
		ptrs = append(ptrs, at)
	}
	p.ahead = ptrs
	return max(t.ReadAhead(ptrs), 1)
}

// add appends a question of a GetMany to p.many, where a later Get of its key finds the answer. p.many
// must be in ascending order, so if the question's key is not above the last one, add empties p.many
// instead. Gets of these keys then read the tree again.
func (p *pending) add(q *keyQuestion) {
	switch n := len(p.many); {
	case n > 0 && bytes.Compare(p.many[n-1].key, q.key) >= 0:
		p.many = p.many[:0]
	default:
		p.many = append(p.many, q)
	}
}
