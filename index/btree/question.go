package btree

import (
	"bytes"
	"errors"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A keyQuestion asks for the value of a key, or, with existence, only whether the
// key has one.
type keyQuestion struct {
	tr    *Tree
	key   []byte
	val   region.Ptr
	found bool
	// existence says that val does not matter.
	existence bool
	src       [1]txn.Source
}

// Sources implements txn.Question.
func (q *keyQuestion) Sources() []txn.Source { return q.src[:] }

// Ask implements txn.Question.
func (q *keyQuestion) Ask(f *txn.Fresh) (bool, error) {
	s := q.tr.scratch()
	defer s.free()
	lf, err := q.tr.seek(s, f, f, position{key: q.key})
	if err != nil {
		return false, unlessDestroyed(err)
	}
	v, found, err := lf.get(q.key)
	if err != nil {
		return false, err // with the sources of before: see txn.Question
	}
	q.src[0] = lf.src
	return found == q.found && (v == q.val || q.existence), nil
}

// unlessDestroyed returns err, or nil for ErrDestroyed: if the tree no longer exists, the answer to
// the question has changed, which is not an error.
func unlessDestroyed(err error) error {
	if errors.Is(err, ErrDestroyed) {
		return nil
	}
	return err
}

// A rangeQuestion asks for the entries in a range of keys: the part of one leaf
// that a cursor has passed. It keeps the leaf as it was read, in the
// transaction's memory, and grows with the cursor. In key order the range is
//
//	forward  [from, to]   or, once the leaf is finished, [from, to)
//	reverse  [to, from)
//
// where an empty bound at the upper end is plus infinity.
type rangeQuestion struct {
	tr      *Tree
	n       node
	reverse bool
	// existence says that the values do not matter, only the keys.
	existence bool
	// only, if not nil, says which entries matter: see Cursor.Only.
	only  func(*txn.Fresh, region.Ptr) (bool, error)
	from  []byte
	to    []byte
	reach reach
	slot  int // the slot at which reading begins; in reverse the slot after that
	count int // how many entries were read
	first [1]txn.Source
	srcs  []txn.Source
}

// reach says how far a range was read.
type reach uint8

const (
	untouched  reach = iota // nothing has been read yet: there is nothing to ask
	toEntry                 // the range was read up to its last entry read, inclusive
	toKey                   // the range was read up to the transaction's own key in the field to, inclusive
	toBoundary              // the range was read to the end of the leaf or of the scan
)

// Sources implements txn.Question.
func (q *rangeQuestion) Sources() []txn.Source {
	if q.reach == untouched {
		return nil
	}
	return q.srcs
}

// span is a range of keys from lo on: up to hi, exclusive; if closed, up to hi,
// inclusive; if open, without an end.
type span struct {
	lo, hi       []byte
	closed, open bool
}

// below reports whether key, at or after lo, is within the span.
func (s span) below(key []byte) bool {
	if s.open {
		return true
	}
	c := bytes.Compare(key, s.hi)
	return c < 0 || (s.closed && c == 0)
}

// reached returns the span that was read, and the slots [i, j) of its entries in the leaf.
func (q *rangeQuestion) reached() (s span, i, j int) {
	if q.reverse {
		s, i, j = span{lo: q.to, hi: q.from, open: len(q.from) == 0}, q.slot-q.count, q.slot
		if q.reach == toEntry {
			s.lo = q.n.appendKey(nil, i)
		}
		return s, i, j
	}
	s, i, j = span{lo: q.from, hi: q.to}, q.slot, q.slot+q.count
	switch q.reach {
	case toEntry:
		s.hi, s.closed = q.n.appendKey(nil, j-1), true
	case toKey:
		s.closed = true
	default:
		s.open = len(q.to) == 0
	}
	return s, i, j
}

// Ask implements txn.Question: it walks the leaves that cover the span now and compares their entries
// with the entries that were read.
func (q *rangeQuestion) Ask(f *txn.Fresh) (bool, error) {
	if q.reach == untouched {
		return true, nil
	}
	s := q.tr.scratch()
	defer s.free()
	within, i, j := q.reached()
	var was, is []byte
	var srcs []txn.Source // stored in q only with a definite answer: see txn.Question
	for pos := within.lo; ; {
		lf, err := q.tr.seek(s, f, f, position{key: pos})
		if err == nil {
			err = lf.checkSlots()
		}
		if err != nil {
			return false, unlessDestroyed(err)
		}
		srcs = append(srcs, lf.src)
		first, _ := lf.search(pos)
		for k := first; k < lf.count(); k++ {
			is = lf.appendKey(is[:0], k)
			if !within.below(is) {
				return q.ends(f, i, j, srcs)
			}
			matters, err := q.matters(f, lf.node, k)
			if err != nil {
				return false, err
			}
			if !matters {
				continue
			}
			if i, err = q.skip(f, i, j); err != nil {
				return false, err
			}
			if i == j && sabotage.RangeEnds.Skipped() {
				q.srcs = srcs
				return true, nil
			}
			if i == j || (!q.existence && lf.value(k) != q.n.value(i)) {
				return false, nil
			}
			was = q.n.appendKey(was[:0], i)
			if !bytes.Equal(is, was) {
				return false, nil
			}
			i++
		}
		pos = lf.high()
		if len(pos) == 0 || !within.below(pos) {
			return q.ends(f, i, j, srcs)
		}
	}
}

// ends returns the answer of Ask at the end of the range, which depends on sources. The answer is the same if no entry
// that matters is left in slots [i, j) of the leaf as it was read.
func (q *rangeQuestion) ends(f *txn.Fresh, i, j int, sources []txn.Source) (same bool, err error) {
	if i, err = q.skip(f, i, j); err != nil {
		return false, err
	}
	q.srcs = sources
	return i == j, nil
}

// skip returns the first slot in [i, j), of the leaf as it was read, whose entry matters; j if there is none.
func (q *rangeQuestion) skip(f *txn.Fresh, i, j int) (int, error) {
	for ; i < j; i++ {
		if matters, err := q.matters(f, q.n, i); err != nil || matters {
			return i, err
		}
	}
	return j, nil
}

// matters reports whether the answer depends on the entry in a slot of a leaf.
func (q *rangeQuestion) matters(f *txn.Fresh, n node, slot int) (bool, error) {
	if q.only == nil {
		return true, nil
	}
	v := n.value(slot)
	p, err := v.ptr()
	if err != nil {
		return false, err
	}
	return q.only(f, p)
}
