package btree

import (
	"bytes"
	"errors"
	"slices"

	"github.com/farmsql/farmsql/region"
)

// image is a decoded node, to be written back as one node, several or none.
type image struct {
	ptr   region.Ptr
	level int
	fences
	entries []entry
	// olds are the objects of the nodes that the image has absorbed, besides ptr.
	olds      []region.Ptr
	ascending bool // the new entries were added at the end
	shrunk    bool // entries were removed
	gone      bool // a sibling has absorbed the node
}

// image decodes the node at p, with room for extra more entries.
func (e *editor) image(n node, p region.Ptr, extra int) *image {
	f, entries := n.decode(extra)
	return &image{ptr: p, level: n.level(), fences: f, entries: entries}
}

func (x *image) size() int { return nodeSize(x.fences, x.entries) }

// underfull reports whether a node should be merged with a sibling. This always holds for an inner
// node of one child, and for an empty leaf.
func underfull(cfg Config, level, count, used int) bool {
	return count == 0 || (level > 0 && count == 1) || used < cfg.budget(level)/4
}

// unsettled reports whether x has to be split, merged or moved to another object, and cannot just
// be written back to its own object. A root is never merged; only an inner root of one child has to
// go.
func (e *editor) unsettled(x *image) bool {
	size := x.size()
	mustSplit := len(x.entries) >= minSplit && size > e.cfg.budget(x.level)
	if mustSplit || size > x.ptr.Capacity() {
		return true
	}
	if isRoot := x.infinite(); isRoot {
		return x.level > 0 && len(x.entries) == 1
	}
	return x.shrunk && underfull(e.cfg, x.level, len(x.entries), size)
}

// restructure writes the nodes of work back and updates their parents, one parent at a time. Parents
// that are then too full or too empty become the work of the next round, up to the anchor.
func (e *editor) restructure() error {
	for len(e.work) > 0 {
		work := e.work
		e.work = nil
		for len(work) > 0 {
			parent, err := e.parent(work[0])
			if err != nil {
				return err
			}
			n := 1
			for n < len(work) && (len(parent.high) == 0 || bytes.Compare(work[n].low, parent.high) < 0) {
				n++ // work[n] is a child of the same parent
			}
			if err := e.replace(parent, work[:n]); err != nil {
				return err
			}
			work = work[n:]
			if err := e.settle(parent); err != nil {
				return err
			}
		}
	}
	return nil
}

// parent finds and decodes the parent of x. Except in mergeUnmerged, this preparation has not yet
// changed any node above x, so the committed nodes lead to the parent.
func (e *editor) parent(x *image) (*image, error) {
	pos, level := position{key: x.low}, x.level+1
	for range attemptsMax {
		var p region.Ptr
		var in *inner
		var err error
		switch {
		case e.inPlace:
			_, p, err = e.tr.descend(lateReader{e.l}, pos, level)
		case level == 1:
			in = e.tr.cache.find(&e.s.probe, pos)
			if in == nil {
				in, err = e.tr.load(e.s, pos)
			}
			if in != nil {
				p = in.at
			}
		default:
			_, p, err = e.tr.descend(e.s, pos, level)
		}
		if err != nil {
			return nil, err
		}
		n, err := e.tr.read(lateReader{e.l}, p)
		if err == nil && n.level() == level && pos.within(n) {
			if err := n.checkSlots(); err != nil {
				return nil, err
			}
			return e.image(n, p, 2), nil
		}
		if err != nil && !errors.Is(err, errMoved) {
			return nil, err
		}
		if in == nil {
			return nil, errMoved
		}
		e.tr.refresh(e.s, in, pos)
	}
	return nil, errMoved
}

// replace writes back the kids, which are in order and all below parent, and updates parent's
// entries.
func (e *editor) replace(parent *image, kids []*image) error {
	for i, x := range kids {
		if x.gone {
			continue
		}
		j, err := parent.index(x)
		if err != nil {
			return err
		}
		if x.shrunk {
			if j, err = e.absorb(parent, j, x, kids[i+1:]); err != nil {
				return err
			}
		}
		nodes, err := e.place(x)
		if err != nil {
			return err
		}
		parent.ascending = j == len(parent.entries)-1
		parent.entries = slices.Replace(parent.entries, j, j+1, nodes...)
	}
	return nil
}

// index returns the index of the parent's entry for x. It returns errMoved if no entry agrees with
// x's pointer and fences: then the tree has changed between the reads of the two nodes.
func (parent *image) index(x *image) (int, error) {
	j, found := slices.BinarySearchFunc(parent.entries, x.low, func(e entry, low []byte) int { return bytes.Compare(e.key, low) })
	if !found || parent.entries[j].val != encodePtr(x.ptr) || !bytes.Equal(parent.highFence(j), x.high) {
		return 0, errMoved
	}
	return j, nil
}

// highFence returns the high fence of child j: the key at which the next child begins.
func (parent *image) highFence(j int) []byte {
	if j+1 < len(parent.entries) {
		return parent.entries[j+1].key
	}
	return parent.high
}

// absorb merges x, child j of parent, with siblings as long as x is underfull and
// both fit together. It returns the new index of x. An empty x is always merged, so that the
// only empty nodes left are those without a sibling. A node that is still underfull when it has no
// sibling left becomes an unmerged one, unless parent is the root, which x then replaces. kids are
// children still to be written back; one of them may be the sibling.
func (e *editor) absorb(parent *image, j int, x *image, kids []*image) (int, error) {
	for underfull(e.cfg, x.level, len(x.entries), x.size()) && len(parent.entries) > 1 {
		k, isLeft := j+1, false // the right sibling, or the left one of the last child
		if k == len(parent.entries) {
			k, isLeft = j-1, true
		}
		y, err := e.sibling(parent, k, x.level, kids)
		if err != nil {
			return 0, err
		}
		merged := join(x, y)
		if isLeft {
			merged = join(y, x)
		}
		isFull := merged.size() > e.cfg.budget(x.level)*3/4
		mayStay := len(x.entries) > min(x.level, 1) // not an empty leaf, nor an inner node of one child
		if isFull && mayStay {
			return j, nil
		}
		y.gone = true
		*x = *merged
		j = min(j, k)
		parent.entries = slices.Delete(parent.entries, j+1, j+2)
		parent.shrunk = true
	}
	if len(parent.entries) == 1 && !parent.infinite() && underfull(e.cfg, x.level, len(x.entries), x.size()) {
		parent.shrunk = true
		e.unmerged = append(e.unmerged, unmerged{x.level, x.low})
	}
	return j, nil
}

// unmerged names an underfull node that could not be merged because it is its parent's only child.
// The parent is merged with a sibling of its own in the same round; after that the node has a
// sibling, too.
type unmerged struct {
	level int
	low   []byte
}

// mergeUnmerged merges the unmerged nodes, from the top down, so that each has a sibling when its
// turn comes. It finds them through the nodes as this preparation has changed them: the committed
// nodes may not lead there.
func (e *editor) mergeUnmerged() error {
	e.inPlace = true
	for range attemptsMax {
		if len(e.unmerged) == 0 {
			return nil
		}
		names := e.unmerged
		e.unmerged = nil
		slices.SortStableFunc(names, func(a, b unmerged) int { return b.level - a.level })
		for _, name := range names {
			n, p, err := e.tr.descend(lateReader{e.l}, position{key: name.low}, name.level)
			if err != nil {
				return err
			}
			if err := n.checkSlots(); err != nil {
				return err
			}
			x := e.image(n, p, 0)
			x.shrunk = true
			if e.unsettled(x) {
				e.work = append(e.work, x)
			}
			if err := e.restructure(); err != nil {
				return err
			}
		}
	}
	return errMoved
}

// join returns one node with the entries of two neighbouring nodes. It uses the left node's object.
func join(left, right *image) *image {
	return &image{
		ptr:     left.ptr,
		level:   left.level,
		fences:  fences{left.low, right.high},
		entries: slices.Concat(left.entries, right.entries),
		olds:    slices.Concat(left.olds, []region.Ptr{right.ptr}, right.olds),
		shrunk:  true,
	}
}

// sibling returns child k of parent: one of the kids, which are still to be
// written back, or a node that it reads now.
func (e *editor) sibling(parent *image, k, level int, kids []*image) (*image, error) {
	p, err := parent.entries[k].val.ptr()
	if err != nil {
		return nil, err
	}
	for _, y := range kids {
		if y.ptr == p && !y.gone {
			return y, nil
		}
	}
	b, err := e.l.Read(p)
	if err != nil {
		return nil, asMoved(err)
	}
	n, err := parse(b, e.tr.id)
	if err != nil {
		return nil, err
	}
	if err := n.checkSlots(); err != nil {
		return nil, err
	}
	y := e.image(n, p, 0)
	if y.level != level {
		return nil, errMoved
	}
	_, err = parent.index(y)
	return y, err
}

// place writes x back as one or more nodes, and returns the parent's entries for
// them. It uses the objects of x where they fit, and frees the others.
func (e *editor) place(x *image) ([]entry, error) {
	budget := e.cfg.budget(x.level)
	pieces := partition(x.fences, x.entries, x.level == 0, budget, x.ascending)
	objects := x.olds
	hint := e.tr.anchor.Addr
	if !x.ptr.IsNil() {
		objects = append([]region.Ptr{x.ptr}, x.olds...)
		hint = x.ptr.Addr
	}
	nodes := make([]entry, len(pieces))
	for i, pc := range pieces {
		need := nodeSize(pc.fences, pc.entries)
		p, b, err := e.object(&objects, need, budget, hint)
		if err != nil {
			return nil, err
		}
		build(b, e.tr.id, x.level, pc.fences, pc.entries)
		nodes[i] = entry{pc.low, encodePtr(p)}
	}
	for _, p := range objects {
		if err := e.l.Free(p); err != nil {
			return nil, asMoved(err)
		}
	}
	return nodes, nil
}

// object takes an object of suitable size from the list, or makes a new one. An object that is much
// too large is not suitable: every read would copy all of it.
func (e *editor) object(objects *[]region.Ptr, need, budget int, hint region.Addr) (region.Ptr, []byte, error) {
	for i, p := range *objects {
		if c := p.Capacity(); need <= c && c <= max(2*need, budget) {
			*objects = slices.Delete(slices.Clone(*objects), i, i+1)
			b, err := e.l.Write(p)
			return p, b, asMoved(err)
		}
	}
	return e.l.Alloc(max(need, budget), hint)
}

// settle writes a changed parent back into its object, or adds it to the work of the next round.
func (e *editor) settle(x *image) error {
	if x.ptr == e.tr.anchor {
		return e.settleAnchor(x)
	}
	if e.unsettled(x) {
		e.work = append(e.work, x)
		return nil
	}
	b, err := e.l.Write(x.ptr)
	if err != nil {
		return asMoved(err)
	}
	build(b, e.tr.id, x.level, x.fences, x.entries)
	return nil
}

// settleAnchor writes the anchor back with exactly one root. Several children get a new root above
// them; a root with only one child is replaced by that child.
func (e *editor) settleAnchor(x *image) error {
	for len(x.entries) > 1 {
		roots, err := e.place(&image{level: x.level, entries: x.entries, ascending: x.ascending})
		if err != nil {
			return err
		}
		x.entries = roots
		x.level++
	}
	for x.level > 1 {
		p, err := x.entries[0].val.ptr()
		if err != nil {
			return err
		}
		root, err := e.tr.read(lateReader{e.l}, p)
		if err != nil {
			return err
		}
		if root.count() != 1 {
			break
		}
		x.entries[0].val = root.value(0)
		x.level--
		if err := e.l.Free(p); err != nil {
			return asMoved(err)
		}
	}
	b, err := e.l.Write(x.ptr)
	if err != nil {
		return asMoved(err)
	}
	buildAnchor(b, e.tr.id, e.cfg, x.level, x.entries)
	return nil
}
