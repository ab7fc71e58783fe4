package region

import "iter"

// An extent describes a run of blocks and the slots of the slab there: adjacent slots of one
// class.
type extent struct {
	base   uint64 // offset of slot 0
	class  Class
	slots  int
	head   int // the number of the slab's first block
	blocks int
}

// extentOf returns the extent of a slab of class c in blocks [head, head+n).
// In block 0, slots begin after the region's header.
func (r *Region) extentOf(head, n int, c Class) extent {
	base := max(uint64(head)<<r.shift, r.first)
	end := uint64(head+n) << r.shift
	slots := 0
	if end > base {
		slots = int(end-base) / c.Size()
	}
	return extent{base, c, slots, head, n}
}

// slabOf returns the slab that block i belongs to. It returns false if the block is free or dirty,
// or if its state is invalid.
func (r *Region) slabOf(i int) (extent, bool) {
	b := r.block(i)
	head := i
	if b.kind() == blockTail {
		head -= b.span()
	}
	if head < 0 {
		return extent{}, false
	}
	h := r.block(head)
	if h.kind() != blockHead || !h.valid(head, r.Blocks()) || head+h.span() <= i {
		return extent{}, false
	}
	return r.extentOf(head, h.span(), h.class()), true
}

// slabs yields every slab in address order.
func (r *Region) slabs(yield func(extent) bool) {
	for i := 0; i < r.Blocks(); {
		s, ok := r.slabOf(i)
		if !ok {
			i++
			continue
		}
		if !yield(s) {
			return
		}
		i = s.head + s.blocks
	}
}

// A slotRange is the slots [first, last) of a slab.
type slotRange struct {
	extent
	first, last int
}

// slots yields, slab by slab, the slots that begin at offsets [begin, end).
func (r *Region) slots(begin, end uint64) iter.Seq[slotRange] {
	return func(yield func(slotRange) bool) {
		for i := int(begin >> r.shift); i < r.Blocks() && uint64(i)<<r.shift < end; {
			s, ok := r.slabOf(i)
			if !ok {
				i++
				continue
			}
			at := slotRange{s, s.from(begin), s.from(end)}
			if at.first < at.last && !yield(at) {
				return
			}
			i = s.head + s.blocks
		}
	}
}

// from returns the number of the first slot that begins at off or after it.
func (s extent) from(off uint64) int {
	size := uint64(s.class.Size())
	return int(min((max(off, s.base)-s.base+size-1)/size, uint64(s.slots)))
}

// slot returns the offset of slot i.
func (s extent) slot(i int) uint64 { return s.base + uint64(i)*uint64(s.class.Size()) }

// index returns the number of the slot at off, which is base or more. A 32-bit
// division costs half as much as a 64-bit one.
func (s extent) index(off uint64) int { return int(uint32(off-s.base) / uint32(s.class.Size())) }

// holds reports whether a slot begins at off.
func (s extent) holds(off uint64) bool {
	if off < s.base {
		return false
	}
	i := s.index(off)
	return i < s.slots && s.slot(i) == off
}

// runWords returns the table's words for n blocks that form a slab of class c, in generation 0.
func runWords(n int, c Class) []uint64 {
	words := make([]uint64, n)
	words[0] = uint64(makeBlock(blockHead, c, n))
	for i := 1; i < n; i++ {
		words[i] = uint64(makeBlock(blockTail, c, i))
	}
	return words
}

// setBlocks sets the table's words from block i on, the first one last: see Repair.
func (r *Region) setBlocks(i int, words []uint64) {
	for k := len(words) - 1; k >= 0; k-- {
		r.m.Store(tableOffset+uint64(i+k)*8, words[k])
	}
}
