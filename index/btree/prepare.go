package btree

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// editor applies one transaction's operations on one tree to fresh copies.
type editor struct {
	tr  *Tree
	l   *txn.Late
	s   *scratch
	cfg Config
	// work are the nodes of one level that cannot stay as they are: too full, or nearly empty.
	work []*image
	// ahead is memory for the pointers to leaves that are about to be requested.
	ahead    []region.Ptr
	unmerged []unmerged
	// inPlace is set once restructure has written all nodes back. From then on the tree can be searched
	// as this preparation has changed it.
	inPlace bool
}

// lateReader reads objects as the preparation has left them. Each becomes part of the transaction,
// which locks or validates it.
type lateReader struct{ l *txn.Late }

func (r lateReader) Peek(p region.Ptr) ([]byte, region.Version, error) {
	b, err := r.l.Read(p)
	return b, 0, err
}

// Prepare implements txn.Intent. It first changes the leaves; each leaf shows by its fences that it
// is the right one. Then, where a leaf is too full or nearly empty, it changes the nodes above, level
// by level. It uses cached nodes, and nodes read outside of the transaction, only to find other
// nodes; it never relies on them.
func (p *pending) Prepare(l *txn.Late) error {
	if p.state == undone {
		return nil
	}
	e := &p.editor
	*e = editor{tr: p.tr, l: l, s: p.tr.scratch(), work: e.work[:0], ahead: e.ahead}
	defer e.done()
	if p.state == created {
		return e.buildNew(p.changes)
	}
	if len(p.changes) == 0 {
		return nil
	}
	if err := e.loadConfig(); err != nil {
		return asStale(err)
	}
	if err := e.leaves(p.changes); err != nil {
		return asStale(err)
	}
	if err := e.restructure(); err != nil {
		return asStale(err)
	}
	return asStale(e.mergeUnmerged())
}

// done drops the references of this preparation.
func (e *editor) done() {
	e.s.free()
	clear(e.work)
	*e = editor{work: e.work[:0], ahead: e.ahead}
}

// loadConfig sets the editor's copy of the tree's configuration.
func (e *editor) loadConfig() error {
	if e.tr.config.Load() == nil {
		// Reading the anchor sets tr.config.
		if _, err := e.tr.read(e.s, e.tr.anchor); err != nil {
			return err
		}
	}
	e.cfg = *e.tr.config.Load()
	return nil
}

// asStale converts an error of Prepare. If the tree changed while Prepare read it, the error becomes
// txn.ErrStale, which asks for another Prepare. If the tree was destroyed meanwhile, it becomes a
// conflict.
func asStale(err error) error {
	switch {
	case errors.Is(err, errMoved), errors.Is(err, errKeptChanging):
		return txn.ErrStale
	case errors.Is(err, ErrDestroyed):
		return fmt.Errorf("%w: %w", outcome.ErrConflict, err)
	}
	return err
}

// leaves applies the changes, a leaf at a time.
func (e *editor) leaves(changes []*change) error {
	ahead := 0 // the number of changes whose leaves have been requested
	for len(changes) > 0 {
		if ahead <= 0 {
			ahead = e.readAhead(changes)
		}
		lf, err := e.find(changes[0])
		if err != nil {
			return err
		}
		n, high := 1, lf.high()
		for n < len(changes) && (len(high) == 0 || bytes.Compare(changes[n].key, high) < 0) {
			n++
		}
		if err := e.leaf(lf, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
		ahead -= n
	}
	return nil
}

// readAhead requests the leaves of the next changes, at most getsTogether of them, if their addresses are known and at other
// machines. It returns the number of these changes.
func (e *editor) readAhead(changes []*change) int {
	changes = changes[:min(len(changes), getsTogether)]
	if len(changes) == 1 {
		return 1
	}
	ptrs, anyElsewhere := e.ahead[:0], false
	var last region.Ptr
	for _, c := range changes {
		var at region.Ptr // nil if there is nothing to request
		if c.leaf != last && !c.leaf.IsNil() && !e.tr.m.IsPrimary(c.leaf.Addr) {
			at, anyElsewhere = c.leaf, true
		}
		last = c.leaf
		ptrs = append(ptrs, at)
	}
	e.ahead = ptrs
	if !anyElsewhere {
		return len(changes)
	}
	return max(e.l.ReadAhead(ptrs), 1)
}

// find returns the leaf of a change. It tries the leaf that the change names before it searches.
func (e *editor) find(c *change) (leaf, error) {
	r, pos := lateReader{e.l}, position{key: c.key}
	if !c.leaf.IsNil() {
		if lf, err := e.tr.leafAt(r, c.leaf, pos); !errors.Is(err, errMoved) {
			return lf, err
		}
	}
	return e.tr.seek(e.s, e.s, r, pos)
}

// leaf applies changes to one leaf in place. If they do not fit, it adds an image
// of the leaf with all changes to work, to be split. It opens the leaf for
// writing only when something changes.
func (e *editor) leaf(lf leaf, changes []*change) error {
	n, opened, shrunk := lf.node, false, false
	for i, c := range changes {
		slot, found := n.search(c.key)
		isGone := !found && c.deleted
		isSame := found && !c.deleted && n.value(slot) == c.val
		if isGone || isSame {
			continue
		}
		if !opened {
			opened = true
			b, err := e.l.Write(lf.src.Ptr)
			if err != nil {
				return asMoved(err)
			}
			n = node{b}
			if err := n.checkSlots(); err != nil {
				return err
			}
		}
		switch {
		case c.deleted:
			n.remove(slot)
			shrunk = true
		case found:
			n.setValue(slot, c.val)
		case !e.roomFor(n, c.key) || !n.insert(slot, c.key, c.val):
			x := e.image(n, lf.src.Ptr, len(changes)-i)
			x.ascending = slot == n.count()
			x.shrunk = slices.ContainsFunc(changes, func(c *change) bool { return c.deleted })
			x.entries = merge(x.entries, changes[i:])
			e.work = append(e.work, x)
			return nil
		}
	}
	if invariant.Enabled && opened {
		mustBeSound(n)
	}
	isRoot := fences{n.low(), n.high()}.infinite()
	if shrunk && !isRoot && underfull(e.cfg, n.level(), n.count(), n.used()) {
		x := e.image(n, lf.src.Ptr, 0)
		x.shrunk = true
		e.work = append(e.work, x)
	}
	return nil
}

// mustBeSound panics if a node just changed is not sound.
func mustBeSound(n node) {
	if err := n.validate(); err != nil {
		invariant.Violated("node is sound after a change", err, nil)
	}
}

// roomFor reports whether the node may grow by key without a split: within its budget, or beyond it
// if it would still have too few entries to split.
func (e *editor) roomFor(n node, key []byte) bool {
	return n.count()+1 < minSplit || n.used()+entryBytes+len(key)-n.prefix() <= e.cfg.budget(n.level())
}

// buildNew builds all nodes of a tree that the transaction itself created.
func (e *editor) buildNew(changes []*change) error {
	e.cfg = *e.tr.config.Load()
	roots, err := e.place(&image{entries: merge(nil, changes), ascending: true})
	if err != nil {
		return err
	}
	return e.settleAnchor(&image{ptr: e.tr.anchor, level: 1, entries: roots})
}
