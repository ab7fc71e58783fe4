package hash

import (
	"math/bits"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/worker"
)

// A sight is the state of a lookup in place: views of the home of its key and of the bucket after it.
type sight struct {
	h, prefix uint64 // the key's hash, and the prefix of the shard that the directory gives for it
	buckets   region.Pair
	// slots has a bit for each slot that may have the key. The bits of the home begin at 0, the
	// bits of the bucket after it at secondBucket.
	slots uint
}

// secondBucket is where the bits of the second bucket's slots begin. glance tracks fewer slots than
// that in each bucket.
const secondBucket = 8

// glance decides most lookups where this machine is the shard's primary, without a copy of the
// buckets: it compares keys in place and copies only the value. It prefetches all lines of the
// home and the first line of the home's neighbour before it looks at any of them, so that the
// lookup waits for memory once. It leaves the other cases undecided: pairs outside of their slots,
// stale directories, changes under way, buckets with more than glanceSlots slots, and keys that are
// not in the first blocks of a chain.
func (o *opened) glance(op worker.Operation, s *sight, key, dst []byte) (value []byte, ok, decided bool) {
	if o.slots > glanceSlots {
		return nil, false, false
	}
	first := o.home(s)
	if !op.LookPair(&s.buckets, first) {
		return nil, false, false
	}
	s.buckets.Views[0].TouchLines(o.lines)
	value, at := o.seek(s, key, dst)
	if at == chained {
		value, at = o.seekChain(op, s.buckets.Views[0], s.h, key, dst)
	}
	return value, at.isFound(), at != undecided
}

// glanceIn is like glance, for transaction t, which owns the value's memory. It appends the sources
// of the answer to sources: the bucket that has the key, or both buckets if none has it. It appends
// none if it leaves the lookup undecided.
func (o *opened) glanceIn(t *txn.Tx, h uint64, key []byte, sources []txn.Source) (value []byte, ok bool, _ []txn.Source) {
	if o.slots > glanceSlots {
		return nil, false, nil
	}
	s := sight{h: h}
	first := o.home(&s)
	if !t.LookPair(&s.buckets, first) {
		return nil, false, nil
	}
	home, next := &s.buckets.Views[0], &s.buckets.Views[1]
	home.TouchLines(o.lines)
	value, at := o.seek(&s, key, t.Scratch(o.valueBytes)[:0])
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
	chained // the key is in the chain of its home, or not in the table
	inChain
	nowhere
)

func (f finding) isFound() bool { return f == atHome || f == atNext || f == inChain }

// home returns the home of keys with hash s.h, and stores the prefix of its shard in s.
func (o *opened) home(s *sight) (home region.Ptr) {
	s.prefix, home = o.dir.entrance(s.h).way(s.h, o.class)
	return home.Element(bucketOf(s.h, o.buckets))
}

// seek looks for key in the two buckets in view.
func (o *opened) seek(s *sight, key, dst []byte) ([]byte, finding) {
	if !o.narrow(s) {
		return nil, undecided
	}
	home, next := &s.buckets.Views[0], &s.buckets.Views[1]
	for ; s.slots != 0; s.slots &= s.slots - 1 { // removes the first candidate
		v, i := s.candidate()
		value, m := o.pick(*v, i, o.dataOffset(i), key, dst)
		switch {
		case m == differs:
			continue
		case m == unsure || !home.Valid(): // if home is not valid any more, it may no longer be the key's home
			return nil, undecided
		case v == home:
			return value, atHome
		}
		return value, atNext
	}
	link := home.Word(linkWord)
	switch {
	case !areJoint(*home, *next):
		return nil, undecided
	case link != 0:
		return nil, chained
	}
	return nil, nowhere
}

// narrow finds the slots that may have the key. It returns false if the first bucket is not the
// key's home.
func (o *opened) narrow(s *sight) bool {
	home, next := &s.buckets.Views[0], &s.buckets.Views[1]
	if !livesIn(home, s.prefix, s.h) {
		return false
	}
	// inHome and inNext are the control words of the key in its home and in the bucket after it.
	inHome, inNext := controlPair(wanted(s.h, false)), controlPair(wanted(s.h, true))
	var _ = [1]struct{}{}[glanceSlots-6] // compiles only if glanceSlots is 6: the slots of three words
	// equal sets bit 31 and bit 63 for the two words of a pair. The shifts move these bits to where
	// joined expects the first bit of each pair: at 0, 2 and 4 for the home, and secondBucket
	// higher for the second bucket.
	found := equal(home.Word(controlsWord), inHome)>>31 | equal(home.Word(controlsWord+1), inHome)>>29 |
		equal(next.Word(controlsWord), inNext)>>(31-secondBucket) | equal(next.Word(controlsWord+1), inNext)>>(29-secondBucket)
	if o.slots > 4 {
		found |= equal(home.Word(controlsWord+2), inHome)>>27 | equal(next.Word(controlsWord+2), inNext)>>(27-secondBucket)
	}
	s.slots = joined(found) & o.slotBits
	return true
}

// candidate returns the first slot that may have the key, and its bucket. It has no branch, since
// the processor could not predict which bucket that is.
func (s *sight) candidate() (v *region.View, slot int) {
	i := uint(bits.TrailingZeros64(uint64(s.slots)))
	return &s.buckets.Views[i/secondBucket%2], int(i % secondBucket)
}

// livesIn reports whether home is the home of keys with hash h in the shard with this prefix. It is
// not if the shard has split, or if the bucket is not in use yet.
func livesIn(home *region.View, prefix, h uint64) bool {
	stored := int(uint8(home.Word(versionsWord) >> depthShift)) // depth + 1; 0 if the bucket is not in use
	return (stored != 0 && covers(prefix, h, stored-1)) || sabotage.StaleDirectory.Skipped()
}

// areJoint reports whether a bucket and the bucket after it were read in one state. If so, a key
// that was found in neither bucket was in neither at that moment.
func areJoint(home, next region.View) bool {
	if sabotage.JointBuckets.Skipped() {
		return true
	}
	a, b := home.Word(versionsWord), next.Word(versionsWord)
	return uint16(a>>forwardShift) == uint16(b>>backShift) && home.Valid() && next.Valid()
}

// glanceBlocks bounds how many blocks of a chain glance reads.
const glanceBlocks = 8

// seekChain looks for key in the first blocks of its home's chain. Hardly any chain has more than
// one block.
func (o *opened) seekChain(op worker.Operation, home region.View, h uint64, key, dst []byte) ([]byte, finding) {
	from := home
	for range glanceBlocks {
		block, ok := o.nextBlock(op, from)
		if !ok {
			return nil, undecided
		}
		slots := joined(equal(block.Word(controlsWord), controlPair(wanted(h, false)))>>31) & (1<<blockSlots - 1)
		for ; slots != 0; slots &= slots - 1 { // removes the lowest slot
			i := bits.TrailingZeros(slots)
			switch value, m := o.pick(block, i, o.blockDataOffset(i), key, dst); m {
			case equals:
				return value, inChain
			case unsure:
				return nil, undecided
			}
		}
		switch {
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

// nextBlock returns the block to which a bucket or block links, if it can be read in place and has
// the version in the link.
func (o *opened) nextBlock(op worker.Operation, from region.View) (region.View, bool) {
	p, version := chainOf(from)
	if !from.Valid() || p.Class().Capacity() < o.blockBytes() {
		return region.View{}, false
	}
	block, ok := op.Look(p)
	return block, ok && (uint16(block.Word(versionsWord)>>forwardShift) == version || sabotage.ChainVersion.Skipped())
}

// chainOf returns the pointer to the block that a bucket or a block links to, and the chain version
// in the link.
func chainOf(from region.View) (block region.Ptr, version uint16) {
	addr, tail := from.Word(linkWord), from.Word(linkWord+1)
	return region.MakePtr(region.Addr(addr), region.Class(tail), tail>>8), uint16(from.Word(versionsWord))
}

// The 64-bit words at the beginning of a bucket (see page), and the positions of fields in them. Each
// word from controlsWord on has the control words of two slots.
const (
	linkWord     = linkOffset / 8
	versionsWord = linkVersion / 8
	controlsWord = pageHeaderBytes / 8

	forwardShift = (forwardVersion - linkVersion) * 8
	backShift    = (backVersion - linkVersion) * 8
	depthShift   = (depthOffset - linkVersion) * 8

	// glanceSlots is the number of slots whose control words are on the first line of a bucket.
	glanceSlots = 2 * (region.FirstWords - controlsWord)
)

// slotIn returns slot i of the bucket or block v, without its data.
func slotIn(v region.View, i int) slot {
	return slot{control: uint32(v.Word(controlsWord+i/2) >> (i % 2 * 32))}
}

// A match says whether a slot has a key.
type match uint8

const (
	unsure match = iota // the bucket has changed since the view began, or the pair is outside
	differs
	equals
)

// pick copies the value from slot i of the bucket or block v if the slot has key. data is the
// offset of the slot's data.
func (o *opened) pick(v region.View, i, data int, key, dst []byte) ([]byte, match) {
	s := slotIn(v, i)
	if s.outside() {
		return nil, unsure
	}
	k, n := s.lengths()
	if k != len(key) || k+n > o.dataBytes || !v.Equal(key, data) {
		return nil, differs
	}
	value := sized(dst, n)
	if v.Copy(value, data+k); !v.Valid() {
		return nil, unsure
	}
	return value, equals
}

// controlPair returns a pair of equal control words.
func controlPair(control uint32) uint64 { return uint64(control)<<32 | uint64(control) }

// equal compares two control words with the wanted ones: it sets bit 31 if the first is equal, bit
// 63 if the second is. It has no branch that the processor could mispredict: if the words differ,
// the difference is below top, and top minus the difference has lost its highest bit.
func equal(pair, want uint64) uint64 {
	const top = 1<<63 | 1<<31
	differs := (pair & (wantedMask<<32 | wantedMask)) ^ want
	return (top - differs) & top
}

// joined packs the bits of pairs of words: it moves the second word's bit of each pair next to the
// first word's. The bits of the first words are 0, 2 and 4.
func joined(bits uint64) uint { return uint(bits | bits>>31) }

// sized returns n bytes, in the memory of b if that is large enough.
func sized(b []byte, n int) []byte {
	if n > cap(b) {
		return make([]byte, n)
	}
	return b[:n]
}
