package hash

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/region"
)

// numberedShard returns a shard whose number is in the address and in the incarnation of bucket 0.
func numberedShard(i int, prefix uint64, initialDepth int) *shard {
	first := region.MakePtr(region.MakeAddr(1, uint32(i+1)<<16), 1, uint64(i))
	return &shard{shardPtr: shardPtr{first: first}, prefix: prefix, initialDepth: initialDepth}
}

// A directory that learns random splits finds, for every hash, the shard with the longest known
// prefix of the hash.
func TestDirectory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		root := numberedShard(0, 0, 0)
		d := newDirectory(root)
		known := []*shard{root}
		depth := map[*shard]int{root: 0}
		for range 200 {
			s := known[rnd.IntN(len(known))]
			bit := depth[s]
			if bit == 12 {
				continue
			}
			depth[s] = bit + 1
			c := numberedShard(len(known), s.prefix|1<<(63-bit), bit+1)
			known, depth[c] = append(known, c), bit+1
			if d.has(c.prefix, c.initialDepth) {
				t.Fatal("a shard is known before it is added")
			}
			d.add(c)
			d.add(&shard{prefix: c.prefix, initialDepth: c.initialDepth}) // again, by another goroutine
			if !d.has(c.prefix, c.initialDepth) || d.size() != len(known) {
				t.Fatalf("%d shards, want %d", d.size(), len(known))
			}
		}
		for range 1000 {
			h := rnd.Uint64()
			want := root
			for _, s := range known {
				if s.covers(h, s.initialDepth) && s.initialDepth > want.initialDepth {
					want = s
				}
			}
			if got := d.find(h); got != want {
				t.Fatalf("%#x leads to %#x/%d, not %#x/%d", h, got.prefix, got.initialDepth, want.prefix, want.initialDepth)
			}
			if prefix, first := d.entrance(h).way(h, 1); prefix != want.prefix || first != want.first {
				t.Fatalf("%#x leads to %v under %#x, not to %v under %#x", h, first, prefix, want.first, want.prefix)
			}
		}
	}
}

// TestDirectoryWhileGrowing: a lookup that reads an entrance while it changes accepts the buckets to
// which it is led only if the hash belongs to their shard, and only with that shard's own prefix.
func TestDirectoryWhileGrowing(t *testing.T) {
	const depth = 12
	for range 40 {
		shards := []*shard{numberedShard(0, 0, 0)}
		d := newDirectory(shards[0])
		for initialDepth := 1; initialDepth <= depth; initialDepth++ {
			for i := range 1 << (initialDepth - 1) {
				s := numberedShard(len(shards), uint64(2*i+1)<<(64-initialDepth), initialDepth)
				s.first = region.MakePtr(s.first.Addr, 1, 0) // as arrays in new memory have it
				shards = append(shards, s)
			}
		}
		d.add(shards[1<<(depth-1)]) // no more entrances are made later
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, s := range shards[1:] {
				d.add(s)
			}
		})
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 20000 {
			h := rnd.Uint64()
			checkWay(t, d.entrance(h), h, shards)
		}
		wg.Wait()
	}
}

// checkWay checks to which of shards an entrance leads a hash.
func checkWay(t *testing.T, e *entrance, h uint64, shards []*shard) {
	prefix, first := e.way(h, 1)
	s := shards[first.Addr.Offset()>>16-1]
	// The depths in a shard's buckets are the depth of the shard, or more.
	if covers(prefix, h, s.initialDepth) && (prefix != s.prefix || !s.covers(h, s.initialDepth)) {
		t.Fatalf("%#x leads to %v by the prefix %#x, and shard %#x/%d begins at %v", h, first, prefix, s.prefix, s.initialDepth, s.first)
	}
}

// TestEntranceWhileChanging: a lookup is not misled if it runs between the stores of an entrance's
// two words, wherever it is between its own two loads.
func TestEntranceWhileChanging(t *testing.T) {
	parent, child := numberedShard(0, 0, 1), numberedShard(1, 1<<62, 2)
	for _, s := range []*shard{parent, child} {
		s.first = region.MakePtr(s.first.Addr, 1, 7) // incarnations do not tell them apart
	}
	h := child.prefix | 12345
	shards := []*shard{parent, child}
	var e entrance
	e.store(parent)
	checkWay(t, &e, h, shards)
	if prefix, first := e.way(h, 1); prefix != parent.prefix || first != parent.first {
		t.Fatalf("leads to %v by the prefix %#x", first, prefix)
	}
	e.addr.Store(uint64(child.first.Addr)) // all that a store that is under way has done, or a load not seen
	checkWay(t, &e, h, shards)
	if prefix, _ := e.way(h, 1); covers(prefix, h, child.initialDepth) {
		t.Fatalf("buckets of the child are taken for those of prefix %#x", prefix)
	}
	e.store(child)
	checkWay(t, &e, h, shards)
	if prefix, first := e.way(h, 1); prefix != child.prefix || first != child.first {
		t.Fatalf("leads to %v by the prefix %#x", first, prefix)
	}
}
