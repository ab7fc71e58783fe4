package btree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// The node format, little endian, the same for leaves, inner nodes and (after its own fields) the
// anchor:
//
//	 0  magic   u16   2 level u8   3 unused u8
//	 4  count   u16   entries
//	 6  prefix  u16   bytes that every key in [low, high) begins with; not stored again
//	 8  low     u16   bytes of the low fence (0: minus infinity, the empty key)
//	10  high    u16   bytes of the high fence (0: plus infinity)
//	12  heap    u16   offset of the lowest heap byte
//	14  dead    u16   heap bytes that belong to no entry
//	16  tree    u64   id of the tree
//	24  slots   count x { head u32, offset u16, length u16 }, in key order
//	    free
//	    heap    entries, each 16 bytes of value and then the key without prefix
//	    high, low: the fences, up to the very end
//
// A slot's head is the first four bytes of the stored key, big endian, padded
// with zeros: most steps of a binary search stay within the slot array.
const (
	levelAt  = 2
	countAt  = 4
	prefixAt = 6
	lowAt    = 8
	highAt   = 10
	heapAt   = 12
	deadAt   = 14
	treeAt   = 16

	nodeHeaderBytes = 24
	slotBytes       = 8
	valueBytes      = 16
	entryBytes      = slotBytes + valueBytes // an entry's cost besides its stored key

	nodeMagic    = 0xb17e
	maxLevel     = 40
	maxNodeBytes = 1<<16 - 8 // offsets are 16 bits
)

// This fails to compile if the largest node that need not split, with minSplit keys of MaxKeyBytes,
// is too large for offsets of 16 bits.
var _ [maxNodeBytes - (nodeHeaderBytes + 2*MaxKeyBytes + (minSplit)*(entryBytes+MaxKeyBytes))]struct{}

// value is the encoded region.Ptr of an entry: a row in a leaf, a child in an
// inner node.
type value [valueBytes]byte

// node is a view of one encoded node. Its accessors never panic on a node that
// parse accepted: a slot that points outside the payload reads as an empty key
// and a zero value. validate reports such slots.
type node struct{ b []byte }

// parse checks, in constant time, the fields that every later access relies on.
func parse(b []byte, tree uint64) (node, error) {
	if len(b) < nodeHeaderBytes || len(b) > maxNodeBytes {
		return node{}, fmt.Errorf("%w: node of %d bytes", ErrCorrupt, len(b))
	}
	n := node{b}
	if n.u16(0) != nodeMagic || n.level() > maxLevel {
		return node{}, fmt.Errorf("%w: no node (magic %#x, level %d)", ErrCorrupt, n.u16(0), n.level())
	}
	if id := n.tree(); id != tree {
		return node{}, fmt.Errorf("%w: node of tree %#x in tree %#x", ErrCorrupt, id, tree)
	}
	heap, end := n.u16(heapAt), n.heapEnd()
	if n.slotsEnd() > heap || heap > end || n.dead() > end-heap {
		return node{}, fmt.Errorf("%w: %d slots, heap [%d,%d) with %d dead", ErrCorrupt, n.count(), heap, end, n.dead())
	}
	if p := n.prefix(); p > 0 && (p > n.u16(lowAt) || p > n.u16(highAt)) {
		return node{}, fmt.Errorf("%w: prefix of %d bytes beyond the fences", ErrCorrupt, p)
	}
	return n, nil
}

func (n node) u16(at int) int       { return int(binary.LittleEndian.Uint16(n.b[at:])) }
func (n node) setU16(at int, v int) { binary.LittleEndian.PutUint16(n.b[at:], uint16(v)) }

func (n node) level() int    { return int(n.b[levelAt]) }
func (n node) count() int    { return n.u16(countAt) }
func (n node) prefix() int   { return n.u16(prefixAt) }
func (n node) dead() int     { return n.u16(deadAt) }
func (n node) tree() uint64  { return binary.LittleEndian.Uint64(n.b[treeAt:]) }
func (n node) slotsEnd() int { return nodeHeaderBytes + n.count()*slotBytes }
func (n node) heapEnd() int  { return len(n.b) - n.u16(lowAt) - n.u16(highAt) }

// low and high are the fences: every key k of the node has low <= k < high. An
// empty high fence is plus infinity.
func (n node) low() []byte  { return n.b[len(n.b)-n.u16(lowAt):] }
func (n node) high() []byte { e := n.heapEnd(); return n.b[e : e+n.u16(highAt)] }

// prefixBytes are the bytes that stored keys leave out.
func (n node) prefixBytes() []byte { return n.low()[:n.prefix()] }

// used returns the size of the node without dead bytes and free space.
func (n node) used() int { return n.slotsEnd() + len(n.b) - n.u16(heapAt) - n.dead() }

func (n node) slot(i int) (head uint32, off, length int) {
	s := n.b[nodeHeaderBytes+i*slotBytes:]
	_ = s[slotBytes-1]
	return binary.LittleEndian.Uint32(s), int(binary.LittleEndian.Uint16(s[4:])), int(binary.LittleEndian.Uint16(s[6:]))
}

func (n node) setSlot(i int, head uint32, off, length int) {
	s := n.b[nodeHeaderBytes+i*slotBytes:]
	binary.LittleEndian.PutUint32(s, head)
	binary.LittleEndian.PutUint16(s[4:], uint16(off))
	binary.LittleEndian.PutUint16(s[6:], uint16(length))
}

// suffix is key i without the node's prefix.
func (n node) suffix(i int) []byte {
	_, off, length := n.slot(i)
	off += valueBytes
	if off+length > len(n.b) {
		return nil
	}
	return n.b[off : off+length]
}

// value returns the value of entry i.
func (n node) value(i int) (v value) {
	_, off, _ := n.slot(i)
	if off+valueBytes <= len(n.b) {
		copy(v[:], n.b[off:])
	}
	return v
}

// appendKey appends the whole of key i to b.
func (n node) appendKey(b []byte, i int) []byte {
	return append(append(b, n.prefixBytes()...), n.suffix(i)...)
}

// covers reports whether key is in [low, high).
func (n node) covers(key []byte) bool {
	high := n.high()
	return bytes.Compare(n.low(), key) <= 0 && (len(high) == 0 || bytes.Compare(key, high) < 0)
}

// loadFrame loads the header, slots and fences of a node into b, without the entries; see searchIn.
func loadFrame(v region.View, b []byte) {
	v.Load(b, 0, nodeHeaderBytes)
	n := node{b}
	v.Load(b, nodeHeaderBytes, n.slotsEnd())
	v.Load(b, n.heapEnd(), len(b))
}

// search finds the first entry at or after key, and whether its key equals key.
// The node must cover key, or key be its high fence.
func (n node) search(key []byte) (i int, found bool) { return n.searchIn(region.View{}, key) }

// searchIn is like search, for a node of which only the frame is loaded: it loads from v the entries
// that it compares, including the entry that it finds.
func (n node) searchIn(v region.View, key []byte) (i int, found bool) {
	prefix := n.prefix()
	if prefix > len(key) { // this happens only in a node whose fences contradict each other
		return 0, false
	}
	suffix := key[prefix:]
	h := head(suffix)
	lo, hi := 0, n.count()
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		mh, off, length := n.slot(m)
		if mh == h {
			v.Load(n.b, off, off+valueBytes+length)
			c := bytes.Compare(n.suffix(m), suffix)
			if c == 0 {
				return m, true
			}
			if c < 0 {
				lo = m + 1
			} else {
				hi = m
			}
		} else if mh < h {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, false
}

// child returns the index of the inner node's entry whose subtree covers key: the last entry at or
// before key, or -1 if there is none.
func (n node) child(key []byte) int {
	i, found := n.search(key)
	if found {
		return i
	}
	return i - 1
}

// checkSlots checks that the slots and the dead bytes account for the whole heap. Every change of a
// node, and every copy that moves entries, relies on that. It costs about a nanosecond an entry.
func (n node) checkSlots() error {
	heap, end := n.u16(heapAt), n.heapEnd()
	live := 0
	for i := range n.count() {
		_, off, length := n.slot(i)
		if off < heap || off+valueBytes+length > end {
			return fmt.Errorf("%w: entry %d at [%d,+%d) outside the heap", ErrCorrupt, i, off, valueBytes+length)
		}
		live += valueBytes + length
	}
	if live+n.dead() != end-heap {
		return fmt.Errorf("%w: heap of %d bytes, %d live and %d dead", ErrCorrupt, end-heap, live, n.dead())
	}
	return nil
}

// validate checks the whole node, which parse must have accepted.
func (n node) validate() error {
	low, high, p := n.low(), n.high(), n.prefix()
	if len(low) > MaxKeyBytes || len(high) > MaxKeyBytes {
		return fmt.Errorf("%w: fence over %d bytes", ErrCorrupt, MaxKeyBytes)
	}
	if len(high) > 0 && bytes.Compare(low, high) >= 0 {
		return fmt.Errorf("%w: low fence %x not below high fence %x", ErrCorrupt, low, high)
	}
	if p > 0 && !bytes.Equal(low[:p], high[:p]) {
		return fmt.Errorf("%w: fences do not share %d bytes", ErrCorrupt, p)
	}
	if err := n.checkSlots(); err != nil {
		return err
	}
	var key, last []byte
	for i := range n.count() {
		h, _, _ := n.slot(i)
		key = n.appendKey(key[:0], i)
		switch {
		case h != head(n.suffix(i)):
			return fmt.Errorf("%w: head of entry %d is not its key's", ErrCorrupt, i)
		case len(key) > MaxKeyBytes:
			return fmt.Errorf("%w: key %d has %d bytes", ErrCorrupt, i, len(key))
		case !n.covers(key):
			return fmt.Errorf("%w: key %x outside its fences [%x,%x)", ErrCorrupt, key, low, high)
		case i > 0 && bytes.Compare(last, key) >= 0:
			return fmt.Errorf("%w: key %x not after %x", ErrCorrupt, key, last)
		}
		last = append(last[:0], key...)
	}
	if n.level() > 0 && (n.count() == 0 || !bytes.Equal(n.appendKey(nil, 0), low)) {
		return fmt.Errorf("%w: inner node does not begin at its low fence", ErrCorrupt)
	}
	return nil
}

// head is the first four bytes of a stored key as a number.
func head(s []byte) uint32 {
	if len(s) >= 4 {
		return binary.BigEndian.Uint32(s)
	}
	var h uint32
	for i, c := range s {
		h |= uint32(c) << (24 - 8*i)
	}
	return h
}
