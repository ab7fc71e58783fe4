package hash

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// outsideTable returns a table of one shard, all of whose pairs are outside of their slots. Their
// values are their keys twice.
func outsideTable(t *testing.T, cfg Config) *Table {
	t.Helper()
	cfg.ValueBytes = 1
	return newTable(t, cfg)
}

func twice(key []byte) []byte { return bytes.Repeat(key, 2) }

// wantReads looks key up. The key must be found, with this number of local reads.
func wantReads(t *testing.T, tb *Table, key []byte, reads uint64) {
	t.Helper()
	before := tb.m.Stats()
	value, ok, err := tb.Lookup(key, nil)
	if err != nil || !ok || !bytes.Equal(value, twice(key)) {
		t.Fatalf("key %x: %x, %v, %v", key, value, ok, err)
	}
	if s := tb.m.Stats().Sub(before); s.LocalReads != reads || s.RemoteReads != 0 {
		t.Errorf("key %x: %d local and %d remote reads, want %d", key, s.LocalReads, s.RemoteReads, reads)
	}
}

// TestLookupOutsideReads: a value outside of the table costs one more read (NSDI'14 section 3.6). The
// reads of the two buckets count as two here.
func TestLookupOutsideReads(t *testing.T) {
	for _, h := range []int{2, 4, 8, 2 * glanceSlots, 2*glanceSlots + 2} {
		tb := outsideTable(t, Config{Buckets: 16, Neighbourhood: h})
		keys := keysOf(t, tb, 3, h) // half in the home, half in the bucket after it
		for _, key := range keys {
			put(t, tb, key, twice(key))
		}
		for _, key := range keys {
			wantReads(t, tb, key, 3)
		}
		if tb.Stats().Shards > 1 || len(nodes(t, tb)) != 1+1+17+h {
			t.Errorf("H = %d: the table has grown, or a chain: %d objects", h, len(nodes(t, tb)))
		}
	}
}

// A block of a chain is looked at twice.
func TestLookupOutsideReadsOfChains(t *testing.T) {
	tb := outsideTable(t, Config{Buckets: 16, Neighbourhood: 4, MaxLoad: 100})
	keys := keysOf(t, tb, 3, 4+2*blockSlots)
	for _, key := range keys {
		put(t, tb, key, twice(key))
	}
	for i, key := range keys {
		wantReads(t, tb, key, 3+2*uint64(max(0, i-2)/blockSlots))
	}
}

// TestReachAgreesWithSearch: reach finds a key if its pair is outside of its slot, and agrees with
// search. It finds no other key.
func TestReachAgreesWithSearch(t *testing.T) {
	for _, cfg := range []Config{{Neighbourhood: 2}, {Neighbourhood: 4}, {Neighbourhood: 8}} {
		t.Run(fmt.Sprint(cfg.Neighbourhood), func(t *testing.T) {
			cfg.ValueBytes = 8
			tb := newTable(t, cfg)
			for i := range 3000 {
				put(t, tb, testKey(i), bytes.Repeat([]byte{byte(i)}, i%17)) // a half of them outside
			}
			o := mustOpen(t, tb)
			op := tb.m.Start()
			defer op.End()
			found := 0
			for i := range 6000 {
				key := testKey(i)
				h := sum(o.seed, key)
				want, isThere, err := tb.search(op, o, o.dir.find(h), h, key, nil)
				if err != nil {
					t.Fatal(err)
				}
				s := sight{h: h}
				op.Aim(&s.buckets, o.home(&s))
				got, ok, err := o.reach(op, &s, key, make([]byte, 0, 4))
				if err != nil || ok && (!isThere || !bytes.Equal(got, want)) {
					t.Fatalf("key %q: %x, %v, %v; by search %x, %v", key, got, ok, err, want, isThere)
				}
				if ok != (isThere && len(want) > cfg.ValueBytes) {
					t.Fatalf("key %q: found %v, with a value of %d bytes", key, ok, len(want))
				}
				if ok {
					found++
				}
			}
			if found < 1000 {
				t.Errorf("%d keys found", found)
			}
		})
	}
}

// TestReachAtChanges: reach follows nothing from a bucket that has changed since it was looked at,
// from a home that is no longer the key's, or along another bucket's chain.
func TestReachAtChanges(t *testing.T) {
	tb := outsideTable(t, Config{Buckets: 16, Neighbourhood: 4, MaxLoad: 100})
	keys := keysOf(t, tb, 3, 6)
	for _, key := range keys {
		put(t, tb, key, twice(key))
	}
	o := mustOpen(t, tb)
	op := tb.m.Start()
	defer op.End()
	reach := func(key []byte) bool {
		t.Helper()
		s := sight{h: sum(o.seed, key)}
		op.Aim(&s.buckets, o.home(&s))
		_, ok, err := o.reach(op, &s, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	key, h := keys[0], sum(o.seed, keys[0])
	s := sight{h: h}
	first := o.home(&s)
	if !op.LookPair(&s.buckets, first) {
		t.Fatal("no view")
	}
	home := s.buckets.Views[0]
	buf := newBuffer(&o.layout)
	isIn := func() bool {
		t.Helper()
		_, ok, err := o.outsideIn(op, buf, home, o.dataOffset(0), uint(1)<<o.slots-1, h, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !isIn() || !reach(key) || !reach(keys[5]) {
		t.Fatal("a pair outside is not found")
	}
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return changePage(tx, first, o, func(p page) { p.setDepth(0) })
	})
	if isIn() || !reach(key) {
		t.Error("a bucket that has changed was followed, or the new one was not")
	}
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return spoilBucketTx(func(p page) { p.setU16(chainVersion, p.u16(chainVersion)+1) })(tb, o, tx)
	})
	if reach(keys[5]) || !reach(key) {
		t.Error("a chain that is another's was followed, or the buckets before it were not")
	}
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return changePage(tx, first, o, func(p page) { p.b[depthOffset] = 0 })
	})
	if reach(key) {
		t.Error("a home that is not in use was followed")
	}
}

// changePage changes a bucket.
func changePage(tx *txn.Tx, p region.Ptr, o *opened, change func(p page)) error {
	b, err := tx.Write(p)
	if err == nil {
		change(o.bucket(b))
	}
	return err
}

// TestReachFails for an invalid pair, as a search does.
func TestReachFails(t *testing.T) {
	tb := outsideTable(t, Config{Buckets: 16, Neighbourhood: 4})
	key := keysOf(t, tb, 3, 1)[0]
	put(t, tb, key, twice(key))
	o := mustOpen(t, tb)
	first := o.home(&sight{h: sum(o.seed, key)})
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return changePage(tx, first, o, func(p page) { clear(p.data(0)[8:]) })
	})
	if _, _, err := tb.Lookup(key, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

// TestLookupOutsideAllocates nothing.
func TestLookupOutsideAllocates(t *testing.T) {
	if invariant.Enabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	tb := outsideTable(t, Config{})
	put(t, tb, []byte("key"), []byte("a value"))
	dst := make([]byte, 0, 16)
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok, err := tb.Lookup([]byte("key"), dst); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSearchAlongAnotherChain: neither a lookup that copies nor a transaction follows a link to a
// block that has another version by now: a pair may have moved from that block to a place where the
// lookup has looked already.
func TestSearchAlongAnotherChain(t *testing.T) {
	tb := newTable(t, Config{Buckets: 16, Neighbourhood: 4, MaxLoad: 100})
	keys := keysOf(t, tb, 3, 14)
	for _, key := range keys[:12] {
		put(t, tb, key, key)
	}
	o := mustOpen(t, tb)
	op := tb.m.Start()
	defer op.End()
	search := func() (found, overtaken int) {
		t.Helper()
		for _, key := range keys {
			h := sum(o.seed, key)
			_, ok, err := tb.search(op, o, o.dir.find(h), h, key, nil)
			tx := tb.m.Begin()
			_, got, late := tb.Get(tx, key)
			tx.Abort()
			switch {
			case err == nil && late == nil && ok == got:
				if ok {
					found++
				}
			case errors.Is(err, errOvertaken) && errors.Is(late, outcome.ErrConflict):
				overtaken++
			default:
				t.Errorf("%x: a lookup says %v, %v, a transaction %v, %v", key, ok, err, got, late)
			}
		}
		return found, overtaken
	}
	if found, overtaken := search(); found != 12 || overtaken != 0 {
		t.Fatalf("%d found, %d overtaken", found, overtaken)
	}
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return spoilBucketTx(func(p page) { p.setU16(chainVersion, p.u16(chainVersion)+1) })(tb, o, tx)
	})
	if found, overtaken := search(); overtaken < 2 || found+overtaken != len(keys) {
		t.Errorf("%d found, %d overtaken although no link leads to the block", found, overtaken)
	}
}
