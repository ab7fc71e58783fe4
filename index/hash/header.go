package hash

import (
	"encoding/binary"
	"fmt"
)

// A header says which keys a shard holds, and points to the shards that have been split from it.
//
//	 0 magic 16b | initial depth 8b | depth 8b | state 8b | 0 8b | cursor 16b
//	 8 prefix
//	16 children: for each bit of the prefix a shardPtr, nil below the initial depth
//
// Shards form a binomial tree. The first shard has an empty prefix and takes every key.
// When a shard of depth d splits, the keys whose hash has bit d set move to a new shard,
// its child d, whose initial depth is d+1. The shard keeps the other keys, and its depth becomes
// d+1 as well. So a shard's prefix is the prefix at its creation, followed by zeros, and a search
// finds the way from the first shard to a key's shard bit by bit. There is no array of all shards,
// which would have to be doubled as the table grows.
type header struct {
	initialDepth int // bits of prefix at its creation
	depth        int // bits of prefix now, after the splits that are complete
	state        state
	// cursor is the next home that the split will move, or, while the shard is being destroyed,
	// the number of buckets left.
	cursor   int
	prefix   uint64
	children [depthMax]shardPtr // set from initialDepth to depth, and at depth while splitting
}

// state of a shard:
//
//	filling ──→ whole ←──→ splitting
//	               └──→ destroying
type state uint8

const (
	// whole: the shard holds all keys with its prefix.
	whole state = iota + 1
	// splitting: the keys of homes below cursor have been divided between the shard and its
	// child number depth.
	splitting
	// filling: the shard is the child of a shard that is splitting.
	filling
	// destroying: the shard is being destroyed, and has cursor buckets left.
	destroying
)

const (
	headerMagic    = 0x6473 // "sd"
	headerChildren = 16
	headerBytes    = headerChildren + depthMax*shardPtrBytes
)

func (h *header) encode(b []byte) {
	binary.LittleEndian.PutUint16(b, headerMagic)
	b[2], b[3], b[4], b[5] = byte(h.initialDepth), byte(h.depth), byte(h.state), 0
	binary.LittleEndian.PutUint16(b[6:], uint16(h.cursor))
	binary.LittleEndian.PutUint64(b[8:], h.prefix)
	for i, c := range h.children {
		c.encode(b[headerChildren+i*shardPtrBytes:])
	}
}

func decodeHeader(b []byte, lay *layout) (*header, error) {
	if len(b) < headerBytes || binary.LittleEndian.Uint16(b) != headerMagic {
		return nil, fmt.Errorf("%w: not the header of a shard", ErrCorrupt)
	}
	h := &header{
		initialDepth: int(b[2]), depth: int(b[3]), state: state(b[4]),
		cursor: int(binary.LittleEndian.Uint16(b[6:])), prefix: binary.LittleEndian.Uint64(b[8:]),
	}
	if h.initialDepth > h.depth || h.depth > depthMax || h.state < whole || h.state > destroying ||
		h.cursor > lay.buckets+1 || (h.state == splitting && h.depth == depthMax) || h.prefix<<h.initialDepth != 0 {
		return nil, fmt.Errorf("%w: header of a shard: initial depth %d, depth %d, state %d, cursor %d, prefix %#x",
			ErrCorrupt, h.initialDepth, h.depth, h.state, h.cursor, h.prefix)
	}
	for i := h.initialDepth; i < h.childrenEnd(); i++ {
		p := b[headerChildren+i*shardPtrBytes:]
		if h.state == destroying && binary.LittleEndian.Uint64(p) == 0 {
			continue // destroyed already
		}
		var err error
		if h.children[i], err = decodeShardPtr(p, lay); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// childrenEnd returns the number of the last child plus one.
func (h *header) childrenEnd() int {
	if h.state == splitting {
		return h.depth + 1
	}
	return h.depth
}

// childPrefix returns the prefix of child i.
func (h *header) childPrefix(i int) uint64 { return h.prefix | 1<<(63-i) }
