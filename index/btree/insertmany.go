package btree

import (
	"bytes"
	"errors"
	"slices"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// An Entry is a key with its value.
type Entry struct {
	Key   []byte
	Value region.Ptr
}

// InsertMany does the Inserts of many entries together: entries that belong to one leaf share a search, a read of the leaf
// and a question. Keys must be in ascending order, and must not change until the transaction ends. If a key has a value,
// InsertMany fails with ErrExists and inserts none.
func (tr *Tree) InsertMany(t *txn.Tx, entries []Entry) error {
	return tr.pend(t).addMany(t, entries, true)
}

// PutMany does the Puts of many entries together. Keys must be in ascending order, and must not change until the
// transaction ends.
func (tr *Tree) PutMany(t *txn.Tx, entries []Entry) error {
	return tr.pend(t).addMany(t, entries, false)
}

// addMany adds entries. If they are new, it first asks the tree for their keys.
func (p *pending) addMany(t *txn.Tx, entries []Entry, isNew bool) error {
	added := make([]*change, 0, len(entries))
	var again []Entry // those whose keys the transaction has changed before
	for _, e := range entries {
		if len(e.Key) > MaxKeyBytes {
			return ErrKeyTooLong
		}
		if c := p.find(e.Key); c != nil {
			if isNew && !c.deleted {
				return ErrExists
			}
			again = append(again, e)
			continue
		}
		c := p.slab.next()
		*c = change{key: e.Key, val: encodePtr(e.Value)}
		added = append(added, c)
	}
	if err := p.locate(t, added, isNew); err != nil {
		return err
	}
	p.merge(t, added)
	for _, e := range again {
		p.set(t, e.Key, encodePtr(e.Value), false)
	}
	return nil
}

// locate notes the leaves of changes, as far as they can be known, and fetches them. If the changes are of new keys,
// it reads the leaves, and returns ErrExists if one has a key; the transaction then depends on the answers.
func (p *pending) locate(t *txn.Tx, changes []*change, isNew bool) error {
	if p.state != existing {
		return nil
	}
	s := p.tr.scratch()
	defer s.free()
	for len(changes) > 0 {
		n := p.requestLeaves(t, s, changes[:min(len(changes), getsTogether)])
		if isNew {
			if err := p.askAbsent(t, s, changes[:n]); err != nil {
				return err
			}
		}
		changes = changes[n:]
	}
	return nil
}

// requestLeaves requests the leaves of changes where the cache leads to them, and notes them in the changes. It returns the
// number of changes whose leaves have been requested, at least 1.
func (p *pending) requestLeaves(t *txn.Tx, s *scratch, changes []*change) int {
	ptrs := p.ahead[:0]
	var in *inner
	var last region.Ptr
	for _, c := range changes {
		pos := position{key: c.key}
		if in == nil || !pos.between(in.low(), in.high()) {
			if in = p.tr.cache.find(&s.probe, pos); in != nil {
				in.touch()
			}
		}
		if in != nil {
			c.leaf, _ = in.childFor(pos) // the search reports the error
		}
		at := c.leaf
		if at == last {
			at = region.Ptr{} // requested already
		}
		ptrs, last = append(ptrs, at), c.leaf
	}
	p.ahead = ptrs
	return max(t.ReadAhead(ptrs), 1)
}

// askAbsent returns ErrExists if the tree has one of the keys of changes. It notes their leaves.
func (p *pending) askAbsent(t *txn.Tx, s *scratch, changes []*change) error {
	var lf leaf
	var q *absentQuestion
	for i, c := range changes {
		if lf.b == nil || !lf.covers(c.key) {
			var err error
			if lf, err = p.leafFor(t, s, c); err != nil {
				return err
			}
			q = p.absents.next()
			*q = absentQuestion{tr: p.tr, first: [1]txn.Source{lf.src}, changes: changes[i:i:len(changes)]}
			q.srcs = q.first[:]
			t.Expect(q)
		}
		if _, found := lf.search(c.key); found {
			return ErrExists
		}
		c.leaf = lf.src.Ptr
		q.changes = q.changes[:len(q.changes)+1]
	}
	return nil
}

// leafFor reads the leaf of a change. It tries the one that the change names first.
func (p *pending) leafFor(t *txn.Tx, s *scratch, c *change) (leaf, error) {
	pos := position{key: c.key}
	if !c.leaf.IsNil() {
		if lf, err := p.tr.leafAt(t, c.leaf, pos); !errors.Is(err, errMoved) {
			return lf, err
		}
	}
	return p.tr.seek(s, s, t, pos)
}

// merge adds changes of further keys, in ascending order.
func (p *pending) merge(t *txn.Tx, added []*change) {
	if len(added) == 0 {
		return
	}
	p.prepareIn(t)
	p.edits += uint64(len(added))
	before := len(p.changes)
	p.changes = append(p.changes, added...)
	if before > 0 && bytes.Compare(p.changes[before-1].key, added[0].key) > 0 {
		mergeBack(p.changes, before, added)
	}
	t.OnRollback(func() {
		for _, c := range slices.Backward(added) {
			p.take(c)
		}
	})
}

// mergeBack merges added into the first changes of all, whose number is before. all has room for both.
func mergeBack(all []*change, before int, added []*change) {
	for to := len(all) - 1; len(added) > 0; to-- {
		last := added[len(added)-1]
		if before > 0 && bytes.Compare(all[before-1].key, last.key) > 0 {
			before--
			all[to] = all[before]
			continue
		}
		all[to], added = last, added[:len(added)-1]
	}
}

// An absentQuestion asks whether keys are absent that belonged to one leaf.
type absentQuestion struct {
	tr      *Tree
	changes []*change // those of the keys
	first   [1]txn.Source
	srcs    []txn.Source
}

// Sources implements txn.Question.
func (q *absentQuestion) Sources() []txn.Source { return q.srcs }

// Ask implements txn.Question.
func (q *absentQuestion) Ask(f *txn.Fresh) (bool, error) {
	s := q.tr.scratch()
	defer s.free()
	var lf leaf
	var srcs []txn.Source // stored in q only with a definite answer: see txn.Question
	for _, c := range q.changes {
		if lf.b == nil || !lf.covers(c.key) {
			var err error
			if lf, err = q.tr.seek(s, f, f, position{key: c.key}); err != nil {
				return false, unlessDestroyed(err)
			}
			srcs = append(srcs, lf.src)
		}
		if _, found := lf.search(c.key); found {
			return false, nil
		}
	}
	q.srcs = srcs
	return true, nil
}
