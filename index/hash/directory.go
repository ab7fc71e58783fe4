package hash

import (
	"sync"
	"sync/atomic"
)

// A shard is what a machine remembers of one.
type shard struct {
	shardPtr
	prefix uint64
	born   int
	// child is the shard that this one last split into. The directory does not
	// lead to it before the split is complete.
	child atomic.Pointer[shard]
	// overflows counts pairs that this machine put into chains; see growth.
	overflows atomic.Uint32
}

// covers says whether the keys with hash h belong into a bucket of s that says
// it has a prefix of depth bits. A deeper bucket than the directory knew of is
// how a stale entry is noticed.
func (s *shard) covers(h uint64, depth int) bool { return (h^s.prefix)>>(64-depth) == 0 }

// directory leads from a hash to its shard, as far as this machine knows. It is
// a cache: shards that have split since are noticed by the depth that their
// buckets say, and their headers tell the rest. Lookups take no lock.
type directory struct {
	table atomic.Pointer[routes]
	mu    struct {
		sync.Mutex
		// shards counts the shards known.
		shards int
	}
}

// routes has an entry for each value that the first bits of a hash can have.
type routes struct {
	bits    int
	entries []atomic.Pointer[shard]
}

func newDirectory(root *shard) *directory {
	d := &directory{}
	r := &routes{entries: make([]atomic.Pointer[shard], 1)}
	r.entries[0].Store(root)
	d.table.Store(r)
	d.mu.shards = 1
	return d
}

// find returns the shard that h belongs to as far as is known.
func (d *directory) find(h uint64) *shard {
	r := d.table.Load()
	return r.entries[h>>(64-r.bits)].Load()
}

// add enters a shard, over those that it split from and under those that split
// from it.
func (d *directory) add(s *shard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.table.Load()
	if s.born > r.bits {
		r = r.grow(s.born)
		d.table.Store(r)
	}
	lo := int(s.prefix >> (64 - r.bits))
	added := false
	for i := range 1 << (r.bits - s.born) {
		if e := &r.entries[lo+i]; e.Load().born < s.born {
			e.Store(s)
			added = true
		}
	}
	if added {
		d.mu.shards++
	}
}

// has reports whether the shard with this prefix is known.
func (d *directory) has(prefix uint64, born int) bool {
	r := d.table.Load()
	return born <= r.bits && r.entries[prefix>>(64-r.bits)].Load().born >= born
}

// size returns how many shards are known.
func (d *directory) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.shards
}

// grow returns routes with more bits that lead to the same shards.
func (r *routes) grow(bits int) *routes {
	g := &routes{bits: bits, entries: make([]atomic.Pointer[shard], 1<<bits)}
	for i := range g.entries {
		g.entries[i].Store(r.entries[i>>(bits-r.bits)].Load())
	}
	return g
}
