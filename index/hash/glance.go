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
// stale directories, changes under way, neighbourhoods of more slots than have their
// control words on the first lines, and what is not among a chain's first blocks.
func (o *opened) glance(op txn.Operation, h uint64, key, dst []byte) (value []byte, ok, decided bool) {
	if o.slots > glanceSlots {
		return nil, false, false
	}
	prefix, first := o.home(h)
	home, next, ok := op.LookPair(first)
	if !ok {
		return nil, false, false
	}
	home.Touch(0, o.bucketBytes())
	value, at := o.seek(home, next, prefix, h, key, dst)
	if at == chained {
		value, at = o.seekChain(op, home, h, key, dst)
	}
	return value, at.isFound(), at != undecided
}

// glanceIn is glance for transaction t, whose memory the value is in. It appends
// what the answer came from to sources: the bucket that has the key, or both if
// none has. There are none if it is undecided.
func (o *opened) glanceIn(t *txn.Tx, h uint64, key []byte, sources []txn.Source) (value []byte, ok bool, _ []txn.Source) {
	if o.slots > glanceSlots {
		return nil, false, nil
	}
	prefix, first := o.home(h)
	home, next, ok := t.LookPair(first)
	if !ok {
		return nil, false, nil
	}
	home.Touch(0, o.bucketBytes())
	value, at := o.seek(home, next, prefix, h, key, t.Scratch(o.valueBytes)[:0])
	if at == atHome || at == nowhere {
		sources = append(sources, txn.Source{Ptr: first, Version: home.Header().Version()})
	}
	if at == atNext || at == nowhere {
		sources = append(sources, txn.Source{Ptr: first.Element(1), Version: next.Header().Version()})
	}
	return value, at.isFound(), sources
}

// A finding says where a key is.
type finding uint8

const (
	undecided finding = iota
	atHome
	atNext
	chained // in the chain of its home, or nowhere
	inChain
	nowhere
)

func (f finding) isFound() bool { return f == atHome || f == atNext || f == inChain }

// home returns the home of keys with hash h, and the prefix with which h comes there.
func (o *opened) home(h uint64) (prefix uint64, home region.Ptr) {
	prefix, first := o.dir.entrance(h).way(h, o.class)
	return prefix, first.Element(bucketOf(h, o.buckets))
}

// seek looks for key in two buckets in view.
func (o *opened) seek(home, next region.View, prefix, h uint64, key, dst []byte) ([]byte, finding) {
	value, at := o.seekHome(home, o.wanting(home, wanted(h, false)), prefix, h, key, dst)
	if at != nowhere {
		return value, at
	}
	return o.seekNext(home, next, o.wanting(next, wanted(h, true)), key, dst)
}

// seekHome looks for key in slots of its home; nowhere means that it is in none of
// them.
func (o *opened) seekHome(home region.View, slots uint, prefix, h uint64, key, dst []byte) ([]byte, finding) {
	if !livesIn(home, prefix, h) {
		return nil, undecided
	}
	return o.pick(home, o.dataOffset(0), slots, key, dst, atHome)
}

// seekNext looks for key, which its home has not, in slots of the bucket after that.
func (o *opened) seekNext(home, next region.View, slots uint, key, dst []byte) ([]byte, finding) {
	value, at := o.pick(next, o.dataOffset(0), slots, key, dst, atNext)
	if at != nowhere {
		return value, at
	}
	link := home.Word(linkWord)
	switch {
	case !areJoint(home, next):
		return nil, undecided
	case link != 0:
		return nil, chained
	}
	return nil, nowhere
}

// livesIn reports whether home is the home of keys with hash h, which come there with
// prefix. It is not when the shard has split, or is not in use yet.
func livesIn(home region.View, prefix, h uint64) bool {
	depth := int(uint8(home.Word(versionsWord) >> depthShift))
	return depth != 0 && covers(prefix, h, depth-1)
}

// areJoint reports whether a bucket and the one after it are of one moment, so that what
// is in neither was in neither then.
func areJoint(home, next region.View) bool {
	a, b := home.Word(versionsWord), next.Word(versionsWord)
	return uint16(a>>forwardShift) == uint16(b>>backShift) && home.Valid() && next.Valid()
}

// glanceBlocks is how many blocks of a chain are looked at.
const glanceBlocks = 8

// seekChain looks for key in the first blocks of its home's chain, of which hardly any
// has more than one.
func (o *opened) seekChain(op txn.Operation, home region.View, h uint64, key, dst []byte) ([]byte, finding) {
	from := home
	for range glanceBlocks {
		block, ok := o.nextBlock(op, from)
		if !ok {
			return nil, undecided
		}
		slots := joined(equal(block.Word(controlWord), both(wanted(h, false)))>>31) & (1<<blockSlots - 1)
		value, at := o.pick(block, o.blockDataOffset(0), slots, key, dst, inChain)
		switch {
		case at != nowhere:
			return value, at
		case block.Word(linkWord) != 0:
			from = block
		case block.Valid() && home.Valid():
			return nil, nowhere
		default:
			return nil, undecided
		}
	}
	return nil, undecided
}

// nextBlock returns the block that from, a bucket or a block, links to, if it can be looked
// at and is the one that is meant.
func (o *opened) nextBlock(op txn.Operation, from region.View) (region.View, bool) {
	p, version := chainOf(from)
	if !from.Valid() || p.Class().Capacity() < o.blockBytes() {
		return region.View{}, false
	}
	block, ok := op.Look(p)
	return block, ok && uint16(block.Word(versionsWord)>>forwardShift) == version
}

// chainOf returns where the block is that a bucket or a block links to, and the version of
// its chain.
func chainOf(from region.View) (block region.Ptr, version uint16) {
	addr, tail := from.Word(linkWord), from.Word(linkWord+1)
	return region.MakePtr(region.Addr(addr), region.Class(tail), tail>>8), uint16(from.Word(versionsWord))
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

// slotIn returns slot i of the bucket or block v, without its data.
func slotIn(v region.View, i int) slot {
	return slot{control: uint32(v.Word(controlWord+i/2) >> (i % 2 * 32))}
}

// pick takes the value of key from the bucket or block v, whose slots' data begin at
// data. If one of the slots found there holds it the key is here, if none does nowhere in v.
// Where v has changed since it came into view, and between pairs outside, it is undecided.
func (o *opened) pick(v region.View, data int, found uint, key, dst []byte, here finding) ([]byte, finding) {
	for ; found != 0; found &= found - 1 {
		i := bits.TrailingZeros(found)
		s := slotIn(v, i)
		if s.outside() {
			return nil, undecided
		}
		at := data + i*o.dataBytes
		k, n := s.lengths()
		if k != len(key) || k+n > o.dataBytes || !v.Equal(key, at) {
			continue
		}
		value := sized(dst, n)
		if v.Copy(value, at+k); !v.Valid() {
			return nil, undecided
		}
		return value, here
	}
	if !v.Valid() {
		return nil, undecided
	}
	return nil, nowhere
}

// wanting returns which slots have the wanted control word, a bit for each.
func (o *opened) wanting(v region.View, want uint32) uint {
	var _ = [1]struct{}{}[glanceSlots-6] // those here
	pair := both(want)
	found := equal(v.Word(controlWord), pair)>>31 | equal(v.Word(controlWord+1), pair)>>29
	if o.slots > 4 {
		found |= equal(v.Word(controlWord+2), pair) >> 27
	}
	return joined(found) & o.slotBits
}

// both returns two control words.
func both(control uint32) uint64 { return uint64(control)<<32 | uint64(control) }

// equal returns which of two control words are the wanted ones: bit 31 is that of the
// first, bit 63 that of the second. There is no branch that the processor would have to
// guess: where they differ the difference is less than top, which less the difference
// has lost its bit then.
func equal(pair, want uint64) uint64 {
	const top = 1<<63 | 1<<31
	differs := pair&(wantedMask<<32|wantedMask) ^ want
	return (top - differs) & top
}

// joined puts the bits of the second words of pairs beside those of the first, which are
// at 0, 2, 4.
func joined(bits uint64) uint { return uint(bits | bits>>31) }

// sized returns n bytes, in the memory of b if that is large enough.
func sized(b []byte, n int) []byte {
	if n > cap(b) {
		return make([]byte, n)
	}
	return b[:n]
}
