package skiplist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"

	"github.com/farmsql/farmsql/region"
)

// ErrCorrupt means that an object is not a node.
var ErrCorrupt = errors.New("skiplist: not a node")

// A node is the payload of an object:
//
//	0 height: the number of levels that the node is on
//	1 0
//	2 length of the key
//	4 length of the value
//	8 pointers to the next nodes, from level 0 on
//	. key, value
//
// The head has all levels and no key.
type node []byte

const (
	heightMax   = 12
	headerBytes = 8

	keyLengthOffset   = 2
	valueLengthOffset = 4
)

// KeyBytesMax is the maximal length of a key.
const KeyBytesMax = 1<<16 - 1

// nodeBytes returns the size of a node.
func nodeBytes(height, key, value int) int { return headerBytes + height*region.PtrBytes + key + value }

// parse returns the node in b.
func parse(b []byte) (node, error) {
	n := node(b)
	if len(b) < headerBytes || b[0] == 0 || b[0] > heightMax || nodeBytes(n.height(), n.keyBytes(), n.valueBytes()) > len(b) {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(b))
	}
	return n, nil
}

// format makes b a node without neighbours.
func format(b []byte, height int, key, value []byte) node {
	n := node(b)
	n[0] = byte(height)
	binary.LittleEndian.PutUint16(n[keyLengthOffset:], uint16(len(key)))
	copy(n[nodeBytes(height, 0, 0):], key)
	n.setValue(value)
	return n
}

func (n node) height() int     { return int(n[0]) }
func (n node) keyBytes() int   { return int(binary.LittleEndian.Uint16(n[keyLengthOffset:])) }
func (n node) valueBytes() int { return int(binary.LittleEndian.Uint32(n[valueLengthOffset:])) }

func (n node) key() []byte {
	at := nodeBytes(n.height(), 0, 0)
	return n[at : at+n.keyBytes()]
}

func (n node) value() []byte {
	at := nodeBytes(n.height(), n.keyBytes(), 0)
	return n[at : at+n.valueBytes() : at+n.valueBytes()]
}

// fits reports whether the node's object has room for a value.
func (n node) fits(value []byte) bool {
	return nodeBytes(n.height(), n.keyBytes(), len(value)) <= len(n)
}

// setValue replaces the value, for which there must be room.
func (n node) setValue(value []byte) {
	binary.LittleEndian.PutUint32(n[valueLengthOffset:], uint32(len(value)))
	copy(n[nodeBytes(n.height(), n.keyBytes(), 0):], value)
}

// next returns the pointer to the next node of a level that n is on.
func (n node) next(level int) (region.Ptr, error) {
	if level >= n.height() {
		return region.Ptr{}, fmt.Errorf("%w: level %d of %d", ErrCorrupt, level, n.height())
	}
	p, err := region.DecodePtr(n[headerBytes+level*region.PtrBytes:])
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return p, nil
}

func (n node) setNext(level int, p region.Ptr) {
	at := headerBytes + level*region.PtrBytes
	p.Append(n[at : at : at+region.PtrBytes])
}

// heightOf returns the height of a key's node. A quarter of the nodes of each level is also on the
// next level. The key's hash decides, so that a list's shape does not depend on who has filled it.
func heightOf(key []byte) int {
	h := fnv.New64a()
	_, _ = h.Write(key) // never fails
	const mixer = 0x9e3779b97f4a7c15
	return min(1+bits.LeadingZeros64(h.Sum64()*mixer)/2, heightMax)
}
