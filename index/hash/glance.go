package hash

import (
	"math/bits"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// glance decides most lookups where this machine is the shard's primary, without
// a copy of the buckets: it compares keys where they are and takes no more than
// the value. All lines of the home and the first of its neighbour are asked for
// before the first of them is looked at, so that the lookup waits for memory
// once. What is not plain it leaves undecided: pairs outside of their slots,
// chains, stale directories, changes under way, and neighbourhoods of more slots
// than have their control words on the first lines.
func (o *opened) glance(op txn.Operation, s *shard, first region.Ptr, h uint64, key, dst []byte) (value []byte, ok, decided bool) {
	if o.slots > glanceSlots {
		return nil, false, false
	}
	home, next, ok := op.LookPair(first)
	if !ok {
		return nil, false, false
	}
	home.Touch(0, o.bucketBytes())
	return o.decide(home, next, s, h, key, dst)
}

// glanceIn is glance for transaction t, whose memory the value is in. It appends
// what the answer came from to sources: the bucket that has the key, or both if
// none has. There are none if it is undecided.
func (o *opened) glanceIn(t *txn.Tx, s *shard, h uint64, key []byte, sources []txn.Source) (value []byte, ok bool, _ []txn.Source) {
	if o.slots > glanceSlots {
		return nil, false, nil
	}
	first := s.first.Element(bucketOf(h, o.buckets))
	home, next, ok := t.LookPair(first)
	if !ok {
		return nil, false, nil
	}
	home.Touch(0, o.bucketBytes())
	value, at := o.seek(home, next, s, h, key, t.Scratch(o.valueBytes)[:0])
	if at == atHome || at == nowhere {
		sources = append(sources, txn.Source{Ptr: first, Version: home.Header().Version()})
	}
	if at == atNext || at == nowhere {
		sources = append(sources, txn.Source{Ptr: first.Element(1), Version: next.Header().Version()})
	}
	return value, at != nowhere, sources
}

// decide is glance once the buckets are in view.
func (o *opened) decide(home, next region.View, s *shard, h uint64, key, dst []byte) (value []byte, ok, decided bool) {
	value, at := o.seek(home, next, s, h, key, dst)
	return value, at == atHome || at == atNext, at != undecided
}

// A finding says in which of two buckets a key is.
type finding uint8

const (
	undecided finding = iota
	atHome
	atNext
	nowhere
)

// seek looks for key in two buckets in view.
func (o *opened) seek(home, next region.View, s *shard, h uint64, key, dst []byte) ([]byte, finding) {
	a := home.Word(versionsWord)
	if depth := int(uint8(a >> depthShift)); depth == 0 || !s.covers(h, depth-1) {
		return nil, undecided
	}
	value, ok, decided := o.pick(home, wanted(h, false), key, dst)
	switch {
	case !decided:
		return nil, undecided
	case ok:
		return value, atHome
	}
	value, ok, decided = o.pick(next, wanted(h, true), key, dst)
	switch {
	case !decided:
		return nil, undecided
	case ok:
		return value, atNext
	}
	b := next.Word(versionsWord)
	whole := uint16(a>>forwardShift) == uint16(b>>backShift) && home.Word(linkWord) == 0
	if !whole || !home.Valid() || !next.Valid() {
		return nil, undecided
	}
	return nil, nowhere
}

// The words at the beginning of a bucket (see page), and where in them things are.
const (
	linkWord     = linkOffset / 8
	versionsWord = linkVersion / 8
	controlWord  = pageHeaderBytes / 8

	forwardShift = (forwardVersion - linkVersion) * 8
	backShift    = (backVersion - linkVersion) * 8
	depthShift   = (depthOffset - linkVersion) * 8

	// glanceSlots is how many control words the first line of a bucket holds.
	glanceSlots = 2 * (region.FirstWords - controlWord)
)

// pick takes the value of key from the bucket v if a slot with the wanted control
// word holds it. It does not decide where the bucket has changed meanwhile, nor
// between pairs outside.
func (o *opened) pick(v region.View, want uint32, key, dst []byte) (value []byte, ok, decided bool) {
	for found := o.wanting(v, want); found != 0; found &= found - 1 {
		i := bits.TrailingZeros(found)
		s := slot{control: uint32(v.Word(controlWord+i/2) >> (i % 2 * 32))}
		if s.outside() {
			return nil, false, false
		}
		at := o.dataOffset(i)
		k, n := s.lengths()
		if k != len(key) || k+n > o.dataBytes || !v.Equal(key, at) {
			continue
		}
		value = sized(dst, n)
		v.Copy(value, at+k)
		return value, true, v.Valid()
	}
	return nil, false, v.Valid()
}

// wanting returns which slots have the wanted control word, a bit for each.
func (o *opened) wanting(v region.View, want uint32) (found uint) {
	for i := 0; i < o.slots; i += 2 {
		w := v.Word(controlWord + i/2)
		found |= matching(uint32(w), want)<<i | matching(uint32(w>>32), want)<<(i+1)
	}
	return found & (1<<o.slots - 1)
}

// matching is 1 if the control word is wanted, and 0 if not, without a branch that
// the processor would have to guess.
func matching(control, want uint32) uint {
	return uint(uint64(control&wantedMask^want)-1) >> 63
}

// sized returns n bytes, in the memory of b if that is large enough.
func sized(b []byte, n int) []byte {
	if n > cap(b) {
		return make([]byte, n)
	}
	return b[:n]
}
