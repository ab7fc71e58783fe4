package region

import "encoding/binary"

// Repair makes sense of a block table that a crash, or a hook that failed, has
// left in the middle of a change. A run that is whole is a slab: what was
// written over part of it later would have broken it. Any other block that is
// not free becomes dirty, which is always safe: it was never used, or no longer. No allocator
// may have the region yet.
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
			r.setBlocks(i, dirtyWords(1))
		}
	}
}

// matches reports whether the table's words from block i on are words.
func (r *Region) matches(i int, words []uint64) bool {
	for k, w := range words {
		if uint64(r.block(i+k)) != w {
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

// Table returns where the block table lies: recovery copies it to new backups.
func (r *Region) Table() (off, n uint64) { return tableOffset, r.first - tableOffset }

// encodeWords returns words as the bytes they are in memory.
func encodeWords(words []uint64) []byte {
	b := make([]byte, 0, len(words)*8)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}
