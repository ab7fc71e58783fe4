package btree

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// Tree is one machine's handle of a tree, with its cache of inner nodes. It is
// safe for concurrent use, but each transaction passed to it belongs to one
// goroutine.
type Tree struct {
	m      *txn.Machine
	anchor region.Ptr
	id     uint64
	local  any // the key of a transaction's pending operations on the tree
	cache  *cache
	config atomic.Pointer[Config]
}

// localKey names a tree by its anchor, so that all handles of the tree share a
// transaction's operations.
type localKey struct{ anchor region.Ptr }

// Create makes an empty tree near hint and returns its anchor. Others can use
// the tree once t commits; t itself can use it immediately.
func Create(t *txn.Tx, cfg Config, hint region.Addr) (region.Ptr, error) {
	cfg, err := cfg.normalize()
	if err != nil {
		return region.Ptr{}, err
	}
	p, _, err := t.Alloc(anchorBytes, hint)
	if err != nil {
		return region.Ptr{}, err
	}
	tr := newTree(t.Machine(), p)
	tr.config.Store(&cfg)
	pend := tr.pend(t)
	pend.state = created
	pend.prepareIn(t)
	t.OnRollback(func() { pend.state = undone })
	return p, nil
}

// Open returns a handle of the tree whose anchor Create returned. It reads
// nothing. The handle's cache is emptied at the end of each epoch, as long as
// the handle is in use.
func Open(m *txn.Machine, anchor region.Ptr) *Tree {
	tr := newTree(m, anchor)
	handle := weak.Make(tr)
	hook := m.OnEpoch(func() {
		if tr := handle.Value(); tr != nil {
			tr.cache.reset()
		}
	})
	runtime.AddCleanup(tr, worker.EpochHook.Cancel, hook)
	return tr
}

func newTree(m *txn.Machine, anchor region.Ptr) *Tree {
	return &Tree{m: m, anchor: anchor, id: treeID(anchor), local: localKey{anchor}, cache: newCache()}
}

// Anchor returns the tree's anchor.
func (tr *Tree) Anchor() region.Ptr { return tr.anchor }

// Cached returns how many inner nodes this handle has cached and the bytes of
// their copies.
func (tr *Tree) Cached() (nodes, bytes int) { return tr.cache.size() }

// reader reads one committed object, or, inside Prepare, an object as the preparation has left it.
// The payload is valid at least until the next read.
type reader interface {
	Peek(p region.Ptr) ([]byte, region.Version, error)
}

// scratch is the heap memory of a search, and a reader of committed objects outside of
// transactions.
type scratch struct {
	m   *txn.Machine
	buf []byte
	probe
}

var scratches = sync.Pool{New: func() any {
	s := new(scratch)
	s.probe.init()
	return s
}}

func (tr *Tree) scratch() *scratch {
	s := scratches.Get().(*scratch)
	s.m = tr.m
	return s
}

func (s *scratch) free() {
	s.m = nil
	scratches.Put(s)
}

// sized returns n bytes with arbitrary content.
func (s *scratch) sized(n int) []byte {
	if n > cap(s.buf) {
		s.buf = make([]byte, n)
	}
	return s.buf[:n]
}

func (s *scratch) Peek(p region.Ptr) ([]byte, region.Version, error) {
	b := s.sized(p.Capacity())
	v, err := s.m.Read(p, b)
	if errors.Is(err, region.ErrLocked) {
		err = fmt.Errorf("%w: %w", outcome.ErrConflict, err)
	}
	return b, v, err
}

// leaf is a leaf as one read returned it.
type leaf struct {
	node
	src txn.Source
}

// attemptsMax bounds the attempts of a search, which starts again if the tree has changed
// meanwhile. Only very many splits around one key come near it.
const attemptsMax = 64

// seek finds the leaf at pos. It reads leaves through r, and inner nodes that are not cached through
// inners, which returns committed nodes. The leaf's own fences show whether it is the right one. If a
// stale inner node led to another leaf or to freed memory, seek reads that node again, and if that
// does not help, the path from the anchor.
func (tr *Tree) seek(s *scratch, inners, r reader, pos position) (leaf, error) {
	for range attemptsMax {
		in := tr.cache.find(&s.probe, pos)
		if in == nil {
			var err error
			if in, err = tr.load(inners, pos); errors.Is(err, errMoved) {
				continue
			} else if err != nil {
				return leaf{}, err
			}
		}
		lf, err := tr.follow(r, in, pos)
		if !errors.Is(err, errMoved) {
			return lf, err
		}
		tr.refresh(inners, in, pos)
	}
	return leaf{}, errKeptChanging
}

// errKeptChanging ends a search after attemptsMax; running the transaction again may succeed.
var errKeptChanging = fmt.Errorf("btree: tree kept changing: %w", outcome.ErrConflict)

// errMoved says that the tree has changed since the search read the pointer that it followed.
var errMoved = errors.New("btree: node moved")

// follow reads the leaf to which the level-1 node leads.
func (tr *Tree) follow(r reader, in *inner, pos position) (leaf, error) {
	p, err := in.child(pos)
	if err != nil {
		return leaf{}, err
	}
	return tr.leafAt(r, p, pos)
}

// leafAt reads the leaf at p. It returns errMoved if that is not, or no longer, the leaf at pos.
func (tr *Tree) leafAt(r reader, p region.Ptr, pos position) (leaf, error) {
	b, v, err := r.Peek(p)
	if err != nil {
		return leaf{}, asMoved(err)
	}
	n, err := parse(b, tr.id)
	if err != nil {
		return leaf{}, err
	}
	if n.level() != 0 || (!pos.within(n) && !sabotage.Fences.Skipped()) {
		return leaf{}, errMoved
	}
	return leaf{n, txn.Source{Ptr: p, Version: v}}, nil
}

// asMoved converts the error of reading freed memory to errMoved.
func asMoved(err error) error {
	if errors.Is(err, region.ErrFreed) {
		return errMoved
	}
	return err
}

// childAt returns the child of n that leads to pos.
func (n node) childAt(pos position) (region.Ptr, error) {
	i := pos.child(n)
	if i < 0 {
		return region.Ptr{}, errMoved
	}
	return n.ptr(i)
}

// refresh reads a cached node again after a search through it came to the wrong leaf. If the node cannot be
// read, or is not the level-1 node at pos any more, refresh drops it from the cache.
func (tr *Tree) refresh(r reader, in *inner, pos position) {
	if tr.m.Meets(clock.StaleCache) {
		return
	}
	if n, err := tr.read(r, in.at); err == nil && n.level() == 1 && pos.within(n) && n.checkSlots() == nil {
		tr.cache.put(newInner(n, in.at))
		return
	}
	tr.cache.drop(in)
}

// load reads the path from the anchor to the level-1 node at pos, and caches
// that node.
func (tr *Tree) load(r reader, pos position) (*inner, error) {
	n, p, err := tr.descend(r, pos, 1)
	if err == nil {
		err = n.checkSlots()
	}
	if err != nil {
		return nil, err
	}
	in := newInner(n, p)
	if !tr.m.Meets(clock.StaleCache) {
		tr.cache.put(in)
	}
	return in, nil
}

// descend follows the path from the anchor to the node at pos of the given level.
func (tr *Tree) descend(r reader, pos position, level int) (node, region.Ptr, error) {
	p := tr.anchor
	for {
		n, err := tr.read(r, p)
		if err != nil {
			return node{}, p, err
		}
		if n.level() < level || !pos.within(n) {
			return node{}, p, errMoved
		}
		if n.level() == level {
			return n, p, nil
		}
		if p, err = n.childAt(pos); err != nil {
			return node{}, p, err
		}
	}
}

// read reads the node, or the anchor, at p.
func (tr *Tree) read(r reader, p region.Ptr) (node, error) {
	b, _, err := r.Peek(p)
	if p == tr.anchor {
		a, err := tr.parseAnchor(b, err)
		return a.node, err
	}
	if err != nil {
		return node{}, asMoved(err)
	}
	return parse(b, tr.id)
}

// parseAnchor parses the result of reading the anchor.
func (tr *Tree) parseAnchor(b []byte, err error) (anchor, error) {
	if errors.Is(err, region.ErrFreed) {
		return anchor{}, ErrDestroyed
	}
	if err != nil {
		return anchor{}, err
	}
	a, err := parseAnchor(b, tr.id)
	if err != nil {
		return anchor{}, err
	}
	if tr.config.Load() == nil {
		tr.config.Store(&a.cfg)
	}
	if a.destroying() {
		return anchor{}, ErrDestroyed
	}
	return a, nil
}

// Lookup returns the value of key, outside of any transaction: the answer was true at some moment
// during the call. If the leaf's parent is cached, Lookup costs one lock-free read of the leaf.
func (tr *Tree) Lookup(key []byte) (region.Ptr, bool, error) {
	if len(key) > MaxKeyBytes {
		return region.Ptr{}, false, ErrKeyTooLong
	}
	if sabotage.FoundRow.Skipped() {
		return region.Ptr{}, false, nil
	}
	op := tr.m.Start()
	defer op.End()
	s := tr.scratch()
	defer s.free()
	if p, found, ok := tr.glance(op, s, key); ok {
		if err := tr.m.Confirm(); err != nil {
			return region.Ptr{}, false, err
		}
		return p, found, nil
	}
	lf, err := tr.seek(s, s, s, position{key: key})
	if err != nil {
		return region.Ptr{}, false, err
	}
	return lf.get(key)
}

// glance answers a lookup if the leaf is at this machine, its level-1 node is cached, and no change
// overtakes the lookup. It copies only the parts of the leaf that the search compares. It
// prefetches all lines of the leaf together, because finding out which lines it needs would take
// another wait for memory.
func (tr *Tree) glance(op worker.Operation, s *scratch, key []byte) (p region.Ptr, found, decided bool) {
	pos := position{key: key}
	in := tr.cache.find(&s.probe, pos)
	if in == nil {
		return p, false, false
	}
	at, err := in.child(pos)
	if err != nil {
		return p, false, false
	}
	v, ok := op.Look(at)
	if !ok {
		return p, false, false
	}
	b := s.sized(at.Capacity())
	v.Touch(0, len(b))
	loadFrame(v, b)
	n, err := parse(b, tr.id)
	if err != nil || n.level() != 0 || (!n.covers(key) && !sabotage.GlanceFences.Skipped()) {
		return p, false, false
	}
	i, found := n.searchIn(v, key)
	if found {
		p, err = n.ptr(i)
	}
	return p, found, err == nil && v.Valid()
}

// get returns the value of key, which the node covers.
func (n node) get(key []byte) (region.Ptr, bool, error) {
	i, found := n.search(key)
	if !found {
		return region.Ptr{}, false, nil
	}
	p, err := n.ptr(i)
	return p, err == nil, err
}
