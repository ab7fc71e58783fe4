package hash

import (
	"encoding/binary"
	"fmt"
)

// A shard's header says which keys the shard holds and which shards came out of
// it.
//
//	 0 magic 16b | born 8b | depth 8b | state 8b | 0 8b | cursor 16b
//	 8 prefix
//	16 children: for each bit of the prefix a shardPtr, nil below born
//
// Shards form a binomial tree. The first shard is born with no prefix at all
// and takes every key. When a shard of depth d splits, the keys whose hash has
// bit d set move to a new shard, its child d, which is born with depth d+1; it
// keeps those whose bit is clear and has depth d+1 as well. So the prefix of a
// shard is that of its birth, followed by zeros, and the way from the first
// shard to a key's is found bit by bit. Nothing is as large as the table: there
// is no array of all shards to double.
type header struct {
	born  int // bits of prefix it was born with
	depth int // bits of prefix it has, all splits completed
	state state
	// cursor is the next home that a split is to move, or how many buckets
	// are left while the shard is destroyed.
	cursor   int
	prefix   uint64
	children [depthMax]shardPtr // those from born to depth are set; depth too while splitting
}

// state of a shard:
//
//	filling ──→ whole ←──→ splitting
//	               └──→ doomed
type state uint8

const (
	// whole: the keys of the prefix are here.
	whole state = iota + 1
	// splitting: those of the homes below cursor are divided among it and child
	// number depth already.
	splitting
	// filling: it is the child of a shard that is splitting.
	filling
	// doomed: it is being destroyed, and has cursor buckets left.
	doomed
)

const (
	headerMagic    = 0x6473 // "sd"
	headerChildren = 16
	headerBytes    = headerChildren + depthMax*shardPtrBytes
)

func (h *header) encode(b []byte) {
	binary.LittleEndian.PutUint16(b, headerMagic)
	b[2], b[3], b[4], b[5] = byte(h.born), byte(h.depth), byte(h.state), 0
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
		born: int(b[2]), depth: int(b[3]), state: state(b[4]),
		cursor: int(binary.LittleEndian.Uint16(b[6:])), prefix: binary.LittleEndian.Uint64(b[8:]),
	}
	if h.born > h.depth || h.depth > depthMax || h.state < whole || h.state > doomed ||
		h.cursor > lay.buckets+1 || h.state == splitting && h.depth == depthMax || h.prefix<<h.born != 0 {
		return nil, fmt.Errorf("%w: header of a shard: born %d, depth %d, state %d, cursor %d, prefix %#x",
			ErrCorrupt, h.born, h.depth, h.state, h.cursor, h.prefix)
	}
	for i := h.born; i < h.known(); i++ {
		p := b[headerChildren+i*shardPtrBytes:]
		if h.state == doomed && binary.LittleEndian.Uint64(p) == 0 {
			continue // destroyed already
		}
		var err error
		if h.children[i], err = decodeShardPtr(p, lay); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// known returns the bit after that of the last child.
func (h *header) known() int {
	if h.state == splitting {
		return h.depth + 1
	}
	return h.depth
}

// childPrefix returns the prefix of child i.
func (h *header) childPrefix(i int) uint64 { return h.prefix | 1<<(63-i) }
