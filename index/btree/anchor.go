package btree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// The anchor is the object by which a tree is known; it never moves. It holds
// the tree's configuration and then a node of one entry, whose child is the
// root. The code treats it as an inner node one level above the root that never
// splits: the tree grows and shrinks when the anchor's child is replaced.
//
//	 0  magic       u64
//	 8  LeafBytes   u32   12 InnerBytes u32
//	16  destroying  u64
//	24  node
const (
	anchorMagic       = 0x3165657274427366 // "fsBtree1"
	anchorLeafAt      = 8
	anchorInnerAt     = 12
	anchorDestroyAt   = 16
	anchorHeaderBytes = 24
	anchorBytes       = anchorHeaderBytes + nodeHeaderBytes + entryBytes
)

// anchor is a view of an anchor object's payload.
type anchor struct {
	b   []byte
	cfg Config
	node
}

func treeID(p region.Ptr) uint64 { return uint64(p.Addr) }

// parseAnchor parses and checks the anchor of a tree: the node above the root, which is missing only while the tree
// is being destroyed.
func parseAnchor(b []byte, tree uint64) (anchor, error) {
	if len(b) < anchorBytes || binary.LittleEndian.Uint64(b) != anchorMagic {
		return anchor{}, fmt.Errorf("%w: no anchor of a tree", ErrCorrupt)
	}
	n, err := parse(b[anchorHeaderBytes:], tree)
	if err != nil {
		return anchor{}, err
	}
	a := anchor{b: b, node: n, cfg: Config{
		LeafBytes:  int(binary.LittleEndian.Uint32(b[anchorLeafAt:])),
		InnerBytes: int(binary.LittleEndian.Uint32(b[anchorInnerAt:])),
	}}
	if n.level() == 0 || n.count() > 1 || (n.count() == 0 && !a.destroying()) {
		return anchor{}, fmt.Errorf("%w: anchor at level %d with %d roots", ErrCorrupt, n.level(), n.count())
	}
	if err := n.checkSlots(); err != nil {
		return anchor{}, err
	}
	for _, size := range []int{a.cfg.LeafBytes, a.cfg.InnerBytes} {
		if size < minNodeBytes || size > 2*maxBudgetBytes {
			return anchor{}, fmt.Errorf("%w: anchor with nodes of %d bytes", ErrCorrupt, size)
		}
	}
	return a, nil
}

func (a anchor) destroying() bool { return binary.LittleEndian.Uint64(a.b[anchorDestroyAt:]) != 0 }

func (a anchor) setDestroying() { binary.LittleEndian.PutUint64(a.b[anchorDestroyAt:], 1) }

// buildAnchor writes an anchor at the given level. Its root is one level below.
func buildAnchor(b []byte, tree uint64, cfg Config, level int, roots []entry) anchor {
	clear(b[:anchorHeaderBytes])
	binary.LittleEndian.PutUint64(b, anchorMagic)
	binary.LittleEndian.PutUint32(b[anchorLeafAt:], uint32(cfg.LeafBytes))
	binary.LittleEndian.PutUint32(b[anchorInnerAt:], uint32(cfg.InnerBytes))
	return anchor{b: b, cfg: cfg, node: build(b[anchorHeaderBytes:], tree, level, fences{}, roots)}
}

func encodePtr(p region.Ptr) (v value) {
	p.Append(v[:0])
	return v
}

// ptr decodes the pointer of entry i.
func (n node) ptr(i int) (region.Ptr, error) {
	v := n.value(i)
	return v.ptr()
}

func (v value) ptr() (region.Ptr, error) {
	p, err := region.DecodePtr(v[:])
	if err != nil {
		return region.Ptr{}, errors.Join(ErrCorrupt, err)
	}
	return p, nil
}
