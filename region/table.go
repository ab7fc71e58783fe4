package region

import "encoding/binary"

// Repair repairs a block table after a crash, or a failed hook, in the middle of a change. A
// complete run is a slab, because a later write over part of it would have broken it. Any other
// block that is not free becomes dirty. That is always safe: such a block was not used yet, or is
// not used any more. No allocator may have the region yet.
func (r *Region) Repair() {
	n := r.Blocks()
	covered := make([]bool, n)
	for i := range n {
		b := r.block(i)
		if b.kind() == blockHead && b.valid(i, n) && r.matches(i, runWords(b.span(), b.class())) {
			for k := range b.span() {
				covered[i+k] = true
			}
		}
	}
	for i := range n {
		if b := r.block(i); b != 0 && b.valid(i, n) && !covered[i] {
			r.setBlocks(i, r.sameGeneration(i, dirtyWords(1)))
		}
	}
}

// matches reports whether the table's words from block i on equal words, whatever their
// generations.
func (r *Region) matches(i int, words []uint64) bool {
	for k, w := range words {
		if r.block(i+k).withGeneration(0) != block(w).withGeneration(0) {
			return false
		}
	}
	return true
}

// dirtyWords returns the table's words for n dirty blocks.
func dirtyWords(n int) []uint64 {
	words := make([]uint64, n)
	for i := range words {
		words[i] = uint64(makeBlock(blockDirt, 0, 0))
	}
	return words
}

// sameGeneration gives words[k], which is to be the table's word of block i+k, the generation that this block has
// now. It returns words.
func (r *Region) sameGeneration(i int, words []uint64) []uint64 {
	for k := range words {
		words[k] = uint64(block(words[k]).withGeneration(r.block(i + k).generation()))
	}
	return words
}

// nextGeneration sets the generations in words to the generations that come next for the blocks
// from i on. hasWrapped says that a generation has wrapped around to zero.
func (r *Region) nextGeneration(i int, words []uint64) (next []uint64, hasWrapped bool) {
	for k := range words {
		g := r.block(i+k).generation() + 1
		hasWrapped = hasWrapped || g == 0
		words[k] = uint64(block(words[k]).withGeneration(g))
	}
	return words, hasWrapped
}

// Table returns the offset and length of the block table, together with the word before it, which
// counts the times that a generation has wrapped around. Recovery copies both to new backups.
func (r *Region) Table() (off, n uint64) { return wrapsOffset, r.first - wrapsOffset }

// encodeWords returns the bytes of words, as they lie in memory.
func encodeWords(words []uint64) []byte {
	b := make([]byte, 0, len(words)*8)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}
