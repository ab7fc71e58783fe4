package btree

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// TestWarmLookupIsOneRead counts the READs of a machine that is not the primary.
func TestWarmLookupIsOneRead(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 3000)
	remote := trees[1]
	lookup := func(k int) {
		t.Helper()
		if v, ok, err := remote.Lookup(intKey(k)); err != nil || !ok || v != rowPtr(k) {
			t.Fatalf("lookup %d: %v %v %v", k, v, ok, err)
		}
	}
	for k := range 3000 {
		lookup(k)
	}
	before := remote.m.Stats()
	for k := range 3000 {
		lookup(k)
	}
	if n := remote.m.Stats().Sub(before).RemoteReads; n != 3000 {
		t.Errorf("3000 lookups with a warm cache took %d remote reads", n)
	}
	key := intKey(1234)
	if allocs := testing.AllocsPerRun(1000, func() { _, _, _ = remote.Lookup(key) }); allocs > 0 && !raceEnabled {
		t.Errorf("a lookup allocates %v times", allocs)
	}
	nodes, _ := remote.Cached()
	if nodes == 0 {
		t.Error("nothing is cached")
	}
	remote.cache.reset()
	if nodes, _ := remote.Cached(); nodes != 0 {
		t.Error("the end of an epoch leaves cached nodes")
	}
	lookup(5)
}

// TestWarmLookupOfOneLeaf: the anchor is cached too.
func TestWarmLookupOfOneLeaf(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 5)
	for range 2 {
		before := trees[1].m.Stats()
		if _, ok, err := trees[1].Lookup(intKey(3)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		t.Log(trees[1].m.Stats().Sub(before).RemoteReads, "reads")
	}
	before := trees[1].m.Stats()
	_, _, _ = trees[1].Lookup(intKey(4))
	if n := trees[1].m.Stats().Sub(before).RemoteReads; n != 1 {
		t.Errorf("%d reads", n)
	}
}

// TestStaleCaches: machine 0 grows and shrinks the tree between the lookups of two other machines,
// whose caches are not told.
func TestStaleCaches(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, smallNodes)
	r := rand.New(rand.NewPCG(7, 7))
	model := map[string]region.Ptr{}
	for round := range 12 {
		must(t, c.Machine(0), func(tx *txn.Tx) error { return churn(trees[0], tx, r, model, round) })
		for k := range 800 {
			want, exists := model[string(intKey(k))]
			tr := trees[1+k%2]
			if v, ok, err := tr.Lookup(intKey(k)); err != nil || ok != exists || ok && v != want {
				t.Fatalf("round %d: lookup %d: %v %v %v, want %v %v", round, k, v, ok, err, want, exists)
			}
		}
		tr := trees[1+round%2]
		tx := tr.m.Begin()
		got, err := scanAll(tr.Scan(tx, nil, nil, round%4 > 1))
		tx.Abort()
		if want := within(pairs(model), nil, nil, round%4 > 1); err != nil || difference(got, want) != "none" {
			t.Fatalf("round %d: scan: %v: %s", round, err, difference(got, want))
		}
	}
	checkTree(t, trees[2], model)
}

// churn fills or empties large stretches of the tree.
func churn(tr *Tree, tx *txn.Tx, r *rand.Rand, model map[string]region.Ptr, round int) error {
	lo := r.IntN(400)
	for k := lo; k < lo+400; k++ {
		key := intKey(k)
		if round%3 == 2 || r.IntN(4) == 0 {
			if _, err := tr.Delete(tx, key); err != nil {
				return err
			}
			delete(model, string(key))
			continue
		}
		if err := tr.Put(tx, key, rowPtr(k+round)); err != nil {
			return err
		}
		model[string(key)] = rowPtr(k + round)
	}
	return nil
}

// TestLookupWhileSplitting: readers on other machines never miss a key that is
// there all the time, while its leaf splits and merges.
func TestLookupWhileSplitting(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, smallNodes)
	for k := 0; k < 400; k += 20 {
		insertRange(t, trees[0], k, k+1)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := 1; i < 3; i++ {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 8))
			for {
				select {
				case <-stop:
					return
				default:
				}
				k := r.IntN(20) * 20
				if v, ok, err := trees[i].Lookup(intKey(k)); err != nil || !ok || v != rowPtr(k) {
					t.Errorf("lookup %d: %v %v %v", k, v, ok, err)
					return
				}
			}
		})
	}
	for round := range 20 {
		must(t, trees[0].m, func(tx *txn.Tx) error {
			for k := range 400 {
				if k%20 == 0 {
					continue
				}
				var err error
				if round%2 == 0 {
					err = trees[0].Put(tx, intKey(k), rowPtr(k))
				} else {
					_, err = trees[0].Delete(tx, intKey(k))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	close(stop)
	wg.Wait()
}

func TestCacheOrder(t *testing.T) {
	c := newCache()
	var p probe
	p.init()
	in := func(low, high string) *inner {
		f := fences{[]byte(low), []byte(high)}
		return newInner(build(make([]byte, 200), testTree, 1, f, entriesOf(low)), region.Ptr{})
	}
	a, b, d := in("", "g"), in("g", "m"), in("m", "")
	for _, n := range []*inner{b, d, a} {
		c.put(n)
	}
	for _, tc := range []struct {
		pos  position
		want *inner
	}{
		{position{[]byte(""), at}, a}, {position{[]byte("f"), at}, a}, {position{[]byte("g"), at}, b}, {position{[]byte("zz"), at}, d},
		{position{[]byte("g"), before}, a}, {position{[]byte("h"), before}, b}, {position{[]byte("m"), before}, b}, {position{side: end}, d},
	} {
		if got := c.find(&p, tc.pos); got != tc.want {
			t.Errorf("%+v finds %v, want %v", tc.pos, got, tc.want)
		}
	}
	wide := in("e", "q") // b and d begin within it: they are older
	c.put(wide)
	if got := c.find(&p, position{key: []byte("h")}); got != wide {
		t.Error("a stale node hides a newer one")
	}
	if got := c.find(&p, position{key: []byte("z")}); got != nil {
		t.Error("a node is found for a key beyond its fence")
	}
	c.drop(b) // long gone: must not take the newer one with it
	if nodes, bytes := c.size(); nodes != 2 || bytes != a.size()+wide.size() {
		t.Errorf("%d nodes of %d bytes", nodes, bytes)
	}
	c.drop(wide)
	if got := c.find(&p, position{key: []byte("f")}); got != a {
		t.Error("what the wide one hid is not found again")
	}
}

// TestEpochClearsCache: memory that a tree has freed is not used for anything else before the
// machines have dropped it from their caches.
func TestEpochClearsCache(t *testing.T) {
	c := openFarm(t, 2)
	// Nodes of another class: no block of other holds an object of trees, too.
	trees, other := createTree(t, c, smallNodes), createTree(t, c, Config{LeafBytes: 500, InnerBytes: 500})
	insertRange(t, trees[0], 0, 200)
	insertRange(t, other[0], 0, 500)
	if _, ok, err := trees[1].Lookup(intKey(7)); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := other[0].Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	cleared := func() bool { nodes, _ := trees[1].Cached(); return nodes == 0 }
	for big := 0; big < 300 && !cleared(); big++ { // until memory is short enough to be reclaimed
		must(t, c.Machine(0), func(tx *txn.Tx) error {
			_, _, err := tx.Alloc(100<<10, 0)
			return err
		})
	}
	// An epoch ends once all operations that were open have ended and are truncated, if need be by a
	// timer.
	for deadline := time.Now().Add(time.Minute); !cleared(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the cache has outlived the epoch")
		}
	}
	if v, ok, err := trees[1].Lookup(intKey(7)); v != rowPtr(7) || !ok || err != nil {
		t.Fatal(v, ok, err)
	}
}
