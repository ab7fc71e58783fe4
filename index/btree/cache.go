package btree

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/google/btree"
)

// position names a leaf by a key, and the side of the key on which the leaf is.
type position struct {
	key  []byte
	side side
}

type side uint8

const (
	at     side = iota // the leaf that covers key
	before             // the leaf that covers the keys just before key
	end                // the last leaf, whatever the key
)

// within reports whether the position is between the fences of n.
func (p position) within(n node) bool { return p.between(n.low(), n.high()) }

// between reports whether the position is between two fences.
func (p position) between(low, high []byte) bool {
	switch p.side {
	case at:
		return bytes.Compare(low, p.key) <= 0 && (len(high) == 0 || bytes.Compare(p.key, high) < 0)
	case before:
		return bytes.Compare(low, p.key) < 0 && (len(high) == 0 || bytes.Compare(p.key, high) <= 0)
	}
	return len(high) == 0
}

// child returns the index of n's entry that leads to the position, or -1 if there is none. The
// position must be between n's fences.
func (p position) child(n node) int {
	switch p.side {
	case at:
		return n.child(p.key)
	case before:
		i, _ := n.search(p.key)
		return i - 1
	}
	return n.count() - 1
}

// item orders cached nodes by their low fence. It has the first eight bytes of
// the low fence (head) and of the high fence (limit), with which most searches
// need not load the node itself.
type item struct {
	head, limit uint64
	*inner
}

// item returns the cache's item for the node.
func (in *inner) item() item {
	it := item{keyHead(in.low()), math.MaxUint64, in}
	if high := in.high(); len(high) > 0 {
		it.limit = keyHead(high)
	}
	return it
}

// keyHead is the first eight bytes of a key as a number, padded with zeros.
func keyHead(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var h [8]byte
	copy(h[:], key)
	return binary.BigEndian.Uint64(h[:])
}

func (a item) less(b item) bool {
	if a.head != b.head {
		return a.head < b.head
	}
	return bytes.Compare(a.low(), b.low()) < 0
}

const cacheDegree = 32

// cache holds the level-1 nodes of a tree that this machine has read, ordered by their low fences.
// A cached node may be stale, and lead to the wrong leaf; the leaf shows by its own fences whether it
// is the right one. Nodes above level 1 are not kept: they are needed only to find a level-1 node
// that is not cached.
//
// Readers use the published tree, which never changes, without a mutex. Writers
// change their own tree under mu, and publish a copy-on-write clone.
type cache struct {
	published atomic.Pointer[btree.BTreeG[item]]

	mu   lockrank.Mutex[lockrank.Leaf]
	tree *btree.BTreeG[item]
}

func newCache() *cache {
	c := new(cache)
	c.reset()
	return c
}

// reset forgets everything.
func (c *cache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tree = btree.NewG(cacheDegree, item.less)
	c.publishLocked()
}

func (c *cache) publishLocked() { c.published.Store(c.tree.Clone()) }

// probe is the memory of a search of the cache. It is pooled together with its
// callback, so that a lookup allocates nothing.
type probe struct {
	pivot inner // a node without entries whose low fence is the key sought
	side  side
	hit   item
	visit btree.ItemIteratorG[item]
}

func (p *probe) init() { p.visit = p.step }

// step is called with the items of a descent, and takes the first as the hit. For a position before
// the key it skips an item that begins at the key. It returns whether the descent goes on.
func (p *probe) step(it item) bool {
	if p.side == before && bytes.Equal(it.low(), p.pivot.low()) {
		return true
	}
	p.hit = it
	return false
}

// find returns a cached node that has the position within its fences, or nil.
func (c *cache) find(p *probe, pos position) *inner {
	p.pivot.text, p.pivot.highAt, p.side = pos.key, uint32(len(pos.key)), pos.side
	tree, head := c.published.Load(), keyHead(pos.key)
	if pos.side == end {
		tree.Descend(p.visit)
	} else {
		tree.DescendLessOrEqual(item{head: head, inner: &p.pivot}, p.visit)
	}
	hit := p.hit
	p.pivot.text, p.pivot.highAt, p.hit = nil, 0, item{}
	switch {
	case hit.inner == nil:
		return nil
	case pos.side == at && head < hit.limit:
		return hit.inner // low <= key, since the descent found this node; key < high, since head < limit
	case !pos.between(hit.low(), hit.high()):
		return nil
	}
	return hit.inner
}

// put adds a node just read. It drops all cached nodes that begin within its fences, since they are
// stale.
func (c *cache) put(in *inner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	high := in.high()
	var stale []item
	c.tree.AscendGreaterOrEqual(in.item(), func(it item) bool {
		if len(high) > 0 && bytes.Compare(it.low(), high) >= 0 {
			return false
		}
		stale = append(stale, it)
		return true
	})
	for _, it := range stale {
		c.tree.Delete(it)
	}
	c.tree.ReplaceOrInsert(in.item())
	c.publishLocked()
}

// drop removes a node, unless a newer one has replaced it.
func (c *cache) drop(in *inner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it, ok := c.tree.Get(in.item()); ok && it.inner == in {
		c.tree.Delete(it)
		c.publishLocked()
	}
}

// size returns the number of cached nodes, and the bytes that they take.
func (c *cache) size() (nodes, bytes int) {
	c.published.Load().Ascend(func(it item) bool {
		nodes++
		bytes += it.size()
		return true
	})
	return nodes, bytes
}
