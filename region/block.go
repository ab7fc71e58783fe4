package region

import "fmt"

// block is the 8-byte allocation state of one block in its region's table. Zero
// is a free block.
//
//	| seal 16b | generation 16b | span 16b | kind 8b | class 8b |
//
// A slab is a run of blocks that holds objects of one class: its head, whose span is the number of
// blocks, then tails, whose span is the distance back to the head. A dirty block is free too, but
// still holds the bytes of its former slab. The words of a run are written from its last block to
// its head, whether it becomes a slab or dirty.
//
// The generation counts the slabs that a block has belonged to: if two tables have the same word
// for a block, they mean the same slab, not just slabs of the same class (see Compare). Regions of
// format 1 have zero there. A word of the region's header counts the times that a generation has
// wrapped around.
type block uint64

const (
	blockFree = 0
	blockHead = 1
	blockTail = 2
	blockDirt = 3

	// blockSeal distinguishes a block's state from bytes that were written here by mistake.
	blockSeal = 0xb10c

	blocksMax = 1 << 12
)

// makeBlock packs a block's state into its table entry.
func makeBlock(kind uint8, c Class, span int) block {
	return block(blockSeal)<<48 | block(span)<<16 | block(kind)<<8 | block(c)
}

func (b block) class() Class       { return Class(b) }
func (b block) kind() uint8        { return uint8(b >> 8) }
func (b block) span() int          { return int(b>>16) & 0xffff }
func (b block) generation() uint16 { return uint16(b >> 32) }

// withGeneration returns the block in generation g.
func (b block) withGeneration(g uint16) block { return (b &^ (0xffff << 32)) | block(g)<<32 }

// holds reports whether the block belongs to a slab of class c.
func (b block) holds(c Class) bool {
	return Class(b) == c && b>>48 == blockSeal && b.kind() != blockDirt
}

// valid reports whether b can be the state of block i of n.
func (b block) valid(i, n int) bool {
	switch {
	case b == 0:
		return true
	case b>>48 != blockSeal:
		return false
	case b.kind() == blockHead:
		return b.span() >= 1 && i+b.span() <= n
	case b.kind() == blockTail:
		return b.span() >= 1 && b.span() <= i
	case b.kind() == blockDirt:
		return true
	}
	return false
}

func (b block) String() string {
	switch {
	case b == 0:
		return "free"
	case b.kind() == blockHead:
		return fmt.Sprintf("head of %d, %d B", b.span(), b.class().Size())
	case b.kind() == blockTail:
		return fmt.Sprintf("tail +%d, %d B", b.span(), b.class().Size())
	case b.kind() == blockDirt:
		return "dirty"
	}
	return fmt.Sprintf("invalid %#x", uint64(b))
}
