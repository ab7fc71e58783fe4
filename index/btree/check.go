package btree

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/region"
)

// Visitor holds the functions that a walk of a tree calls. Each may be nil; an error from one ends
// the walk.
type Visitor struct {
	// Node is passed every object of the tree, the anchor first.
	Node func(p region.Ptr) error
	// Entry is passed every entry in key order. The key is valid during the call.
	Entry func(key []byte, v region.Ptr) error
}

// Shape holds the counts of a walk of a tree.
type Shape struct {
	Levels  int // how many levels of nodes there are: 1 for a tree of one leaf
	Inner   int // inner nodes, without the anchor
	Leaves  int
	Empty   int // leaves without an entry
	Entries int
	// LeafBytes is the size of all leaves' payloads. LeafUsed is the number of bytes in
	// use there.
	LeafBytes, LeafUsed int
}

// CheckError lists the problems of a tree.
type CheckError struct {
	Problems []string
	More     int // problems beyond those listed
}

const problemsMax = 100

func (e *CheckError) Error() string {
	s := fmt.Sprintf("btree: %d problems: %s", len(e.Problems)+e.More, strings.Join(e.Problems, "; "))
	if e.More > 0 {
		s += "; ..."
	}
	return s
}

// Unwrap makes it an ErrCorrupt.
func (e *CheckError) Unwrap() error { return ErrCorrupt }

func (e *CheckError) add(p region.Ptr, format string, args ...any) {
	if len(e.Problems) == problemsMax {
		e.More++
		return
	}
	e.Problems = append(e.Problems, fmt.Sprintf("node %v: ", p)+fmt.Sprintf(format, args...))
}

// Check walks the whole tree and passes every entry to visit, which may be nil. It returns a
// *CheckError with all problems. Nobody may change the tree meanwhile.
func (tr *Tree) Check(ctx context.Context, visit func(key []byte, v region.Ptr) error) error {
	_, err := tr.Inspect(ctx, Visitor{Entry: visit})
	return err
}

// Inspect is like Check, with more results. It checks that every node is sound, that the fences of
// each level partition the key space and agree with the entries above, and that every node is
// reachable exactly once. If Destroy has begun to take the tree apart, Inspect walks the rest, and
// checks only the leaves and that nothing is reachable twice.
func (tr *Tree) Inspect(ctx context.Context, v Visitor) (Shape, error) {
	w := &walker{tr: tr, ctx: ctx, visit: v, seen: make(map[region.Addr]struct{})}
	s := tr.scratch()
	defer s.free()
	b, _, err := s.Peek(tr.anchor)
	if err != nil {
		return Shape{}, err
	}
	a, err := parseAnchor(bytes.Clone(b), tr.id)
	if err != nil {
		return Shape{}, err
	}
	w.s, w.partial = s, a.destroying()
	w.shape.Levels = a.level()
	if v.Node != nil {
		if err := v.Node(tr.anchor); err != nil {
			return w.shape, err
		}
	}
	w.sound(tr.anchor, a.node)
	if err := w.children(tr.anchor, a.node); err != nil {
		return w.shape, err
	}
	if len(w.bad.Problems) > 0 {
		return w.shape, &w.bad
	}
	return w.shape, nil
}

// walker walks a tree depth first.
type walker struct {
	tr      *Tree
	ctx     context.Context
	s       *scratch
	visit   Visitor
	partial bool // Destroy has begun to take the tree apart
	seen    map[region.Addr]struct{}
	shape   Shape
	bad     CheckError
}

// sound records a problem if the bytes of a node contradict each other.
func (w *walker) sound(p region.Ptr, n node) {
	if w.partial && n.level() > 0 {
		return // the left edge of a partly destroyed tree may be gone
	}
	if err := n.validate(); err != nil {
		w.bad.add(p, "%v", err)
	}
}

// children walks all children of n.
func (w *walker) children(p region.Ptr, n node) error {
	if n.count() == 0 {
		return nil
	}
	f := fences{high: n.appendKey(nil, 0)}
	for i := range n.count() {
		f.low, f.high = f.high, n.high()
		if i+1 < n.count() {
			f.high = n.appendKey(nil, i+1)
		}
		child, err := n.ptr(i)
		if err != nil {
			w.bad.add(p, "entry %d: %v", i, err)
			continue
		}
		if err := w.node(child, n.level()-1, f); err != nil {
			return err
		}
	}
	return nil
}

// node walks the node at p. Its parent says that it has the given level and fences.
func (w *walker) node(p region.Ptr, level int, f fences) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if _, twice := w.seen[p.Addr]; twice {
		w.bad.add(p, "reachable twice")
		return nil
	}
	w.seen[p.Addr] = struct{}{}
	if w.visit.Node != nil {
		if err := w.visit.Node(p); err != nil {
			return err
		}
	}
	b, _, err := w.s.Peek(p)
	if err != nil {
		w.bad.add(p, "cannot be read: %v", err)
		return nil
	}
	n, err := parse(bytes.Clone(b), w.tr.id)
	if err != nil {
		w.bad.add(p, "%v", err)
		return nil
	}
	w.sound(p, n)
	if n.level() != level {
		w.bad.add(p, "of level %d below level %d", n.level(), level+1)
		return nil
	}
	if !bytes.Equal(n.low(), f.low) || !bytes.Equal(n.high(), f.high) {
		if !w.partial {
			w.bad.add(p, "fences [%x,%x), but its parent has it at [%x,%x)", n.low(), n.high(), f.low, f.high)
		}
	}
	if level > 0 {
		w.shape.Inner++
		if n.count() < 2 && !w.partial {
			w.bad.add(p, "inner node with %d children", n.count())
		}
		return w.children(p, n)
	}
	return w.leaf(p, n)
}

func (w *walker) leaf(p region.Ptr, n node) error {
	w.shape.Leaves++
	w.shape.Entries += n.count()
	w.shape.LeafBytes += len(n.b)
	w.shape.LeafUsed += n.used()
	if n.count() == 0 {
		w.shape.Empty++
	}
	var key []byte
	for i := 0; w.visit.Entry != nil && i < n.count(); i++ {
		v, err := n.ptr(i)
		if err != nil {
			w.bad.add(p, "entry %d: %v", i, err)
			continue
		}
		key = n.appendKey(key[:0], i)
		if err := w.visit.Entry(key, v); err != nil {
			return err
		}
	}
	return nil
}
