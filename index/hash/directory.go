package hash

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
)

// A shard is a machine's cached state of a shard.
type shard struct {
	shardPtr
	prefix       uint64
	initialDepth int
	// child is the shard that this one last split into. The directory does not
	// point to it before the split is complete.
	child atomic.Pointer[shard]
	// overflows counts pairs that this machine put into chains; see growth.
	overflows atomic.Uint32
}

// covers reports whether a key with hash h belongs in a bucket of s that stores the prefix length
// depth. If a bucket is deeper than the directory says, this shows whether the key has moved.
func (s *shard) covers(h uint64, depth int) bool { return covers(s.prefix, h, depth) }

// covers reports whether prefix and h have the first depth bits in common, up to 63. It shifts
// twice, because a single shift by 64 - depth would cost a comparison of depth with 0.
func covers(prefix, h uint64, depth int) bool { return (h^prefix)>>1>>(63-(uint(depth)&63)) == 0 }

// directory maps a hash to its shard. It is a cache, and may be stale: the depth stored in a bucket
// shows that its shard has split since, and the shard's header then says how. Lookups take no mutex.
type directory struct {
	table atomic.Pointer[routes]
	mu    struct {
		lockrank.Mutex[lockrank.Leaf]
		// shards counts the shards known.
		shards int
	}
}

// routes maps the first bits of a hash to a shard: shards holds the shard itself, and entrances
// holds the fields of the shard that glance needs. So glance need not follow a pointer to the
// shard, which would miss the processor's cache if there are many shards.
type routes struct {
	bits      int
	shards    []atomic.Pointer[shard]
	entrances []entrance
}

// An entrance holds the address of a shard's first bucket, and the length of the shard's prefix.
// (Every hash mapped to the entrance begins with that prefix.) These are two words, which change
// one after the other: the address is stored first and loaded last, and an entrance changes only to
// shards with longer prefixes. So a lookup during a change gets at worst the prefix length of a
// shard together with the address of a shard split from it. The buckets there are deeper, and their
// prefixes end with a set bit, so the lookup does not take them for buckets of the shorter prefix.
type entrance struct {
	addr atomic.Uint64
	tail atomic.Uint64 // | incarnation 56b | length of the prefix 8b |
}

// store makes e the entrance of s. Only one goroutine at a time may call it.
func (e *entrance) store(s *shard) {
	e.addr.Store(uint64(s.first.Addr))
	e.tail.Store(s.first.Incarnation()<<8 | uint64(s.initialDepth))
}

// way returns the prefix of the shard that h is mapped to, and the shard's first bucket.
func (e *entrance) way(h uint64, c region.Class) (prefix uint64, first region.Ptr) {
	tail := e.tail.Load()
	addr := region.Addr(e.addr.Load())
	length := tail & 63
	return h &^ (^uint64(0) >> length), region.MakePtr(addr, c, tail>>8)
}

func (r *routes) set(i int, s *shard) {
	r.shards[i].Store(s)
	r.entrances[i].store(s)
}

func newRoutes(bits int) *routes {
	return &routes{bits, make([]atomic.Pointer[shard], 1<<bits), make([]entrance, 1<<bits)}
}

func newDirectory(root *shard) *directory {
	d := &directory{}
	r := newRoutes(0)
	r.set(0, root)
	d.table.Store(r)
	d.mu.shards = 1
	return d
}

// find returns the shard that h belongs to, as far as this machine knows.
func (d *directory) find(h uint64) *shard {
	r := d.table.Load()
	return r.shards[h>>(64-r.bits)].Load()
}

// entrance returns the entrance of the shard that find returns.
func (d *directory) entrance(h uint64) *entrance { return d.table.Load().entrance(h) }

// entrance returns the entrance of the shard that h belongs to. It shifts twice, as covers does,
// because bits is 0 while there is only one shard.
func (r *routes) entrance(h uint64) *entrance { return &r.entrances[h>>1>>(63-(r.bits&63))] }

// add adds a shard. It replaces the entries of its ancestors, and keeps the entries of shards split
// from it.
func (d *directory) add(s *shard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.table.Load()
	if s.initialDepth > r.bits {
		r = r.grow(s.initialDepth)
		d.table.Store(r)
	}
	lo := int(s.prefix >> (64 - r.bits))
	added := false
	for i := range 1 << (r.bits - s.initialDepth) {
		if r.shards[lo+i].Load().initialDepth < s.initialDepth {
			r.set(lo+i, s)
			added = true
		}
	}
	if added {
		d.mu.shards++
	}
}

// has reports whether the shard with this prefix, of initialDepth bits, is known. After the shard has
// split, its entry may hold a shard with a longer prefix.
func (d *directory) has(prefix uint64, initialDepth int) bool {
	r := d.table.Load()
	return initialDepth <= r.bits && r.shards[prefix>>(64-r.bits)].Load().initialDepth >= initialDepth
}

// size returns how many shards are known.
func (d *directory) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.shards
}

// grow returns routes with more bits that point to the same shards.
func (r *routes) grow(bits int) *routes {
	g := newRoutes(bits)
	for i := range g.shards {
		g.set(i, r.shards[i>>(bits-r.bits)].Load())
	}
	return g
}
