package hash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// TestLookupManyAgreesWithLookup runs on machines that are the primary of some shards, of all and of
// none, with tables of every layout.
func TestLookupManyAgreesWithLookup(t *testing.T) {
	for name, network := range networks {
		c := openNetwork(t, 3, 2, network)
		for i := range c.Machines() {
			Serve(c.Machine(i))
		}
		for _, cfg := range []Config{{ValueBytes: 32}, {KeyBytes: 3, ValueBytes: 20}, {Neighbourhood: 2}, {Neighbourhood: 64}} {
			t.Run(fmt.Sprint(name, cfg.KeyBytes, cfg.ValueBytes, cfg.Neighbourhood), func(t *testing.T) {
				anchor := createTable(t, c.Machine(0), cfg)
				keep := Open(c.Machine(0), anchor)
				for first := 0; first < 1000; first += 100 {
					insertGlanced(t, keep, first)
				}
				for i := range c.Machines() {
					for _, opt := range []Options{{}, {Lookups: lookup.OneTwoSided}} {
						compareMany(t, OpenWith(c.Machine(i), anchor, opt))
					}
				}
			})
		}
	}
}

func compareMany(t *testing.T, tb *Table) {
	t.Helper()
	var keys [][]byte
	for i := range 2000 { // half of them absent
		keys = append(keys, glanceKey(i))
	}
	for _, n := range []int{0, 1, groupKeys - 1, groupKeys + 1, keysOfOperation + 1, len(keys)} {
		answers := make([]int, n)
		err := tb.LookupMany(keys[:n], func(i int, value []byte, ok bool) {
			compareAnswer(t, tb, keys[i], value, ok)
			answers[i]++
		})
		if err != nil || slices.ContainsFunc(answers, func(n int) bool { return n != 1 }) {
			t.Fatalf("answers for %d keys: %v, %v", n, answers, err)
		}
	}
}

// compareAnswer compares what Lookup says of a key.
func compareAnswer(t *testing.T, tb *Table, key, value []byte, ok bool) {
	t.Helper()
	want, found, err := tb.Lookup(key, nil)
	if err != nil || ok != found || !bytes.Equal(value, want) {
		t.Fatalf("key %q: %q %v, Lookup says %q %v, %v", key, value, ok, want, found, err)
	}
}

// TestLookupManyReads: a key of another machine costs as many READs as by itself.
func TestLookupManyReads(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 32})
	insertGlanced(t, Open(c.Machine(0), anchor), 0)
	tb := Open(c.Machine(1), anchor)
	var keys [][]byte
	for i := range 64 {
		keys = append(keys, glanceKey(i))
	}
	reads := func(lookups func()) uint64 {
		before := tb.m.Stats()
		lookups()
		after := tb.m.Stats()
		if n := after.LocalReads - before.LocalReads; n > 0 {
			t.Errorf("%d local reads of what is elsewhere", n)
		}
		return after.RemoteReads - before.RemoteReads
	}
	each := func() {
		for _, key := range keys {
			if _, _, err := tb.Lookup(key, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	each() // reads the anchor
	together := reads(func() {
		if err := tb.LookupMany(keys, func(int, []byte, bool) {}); err != nil {
			t.Fatal(err)
		}
	})
	if alone := reads(each); together != alone || alone < 64 {
		t.Errorf("%d READs for 64 keys together, %d one after the other", together, alone)
	}
}

// TestLookupManyAmongWriters: lookups find values as one writer left them while they are changed,
// moved by growth, deleted and inserted. They find every key that is there all the time.
func TestLookupManyAmongWriters(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) {
			c := openNetwork(t, 3, 3, network)
			anchor := createTable(t, c.Machine(0), Config{ValueBytes: 64, Buckets: 8})
			insertPaired(t, Open(c.Machine(0), anchor), 0, 300)
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				tb := Open(c.Machine(1), anchor)
				for i := 300; !stop.Load() && i < 20000; i++ { // more and more, so that the table grows
					insertPaired(t, tb, i, i+1)
					insertPaired(t, tb, i%300, i%300+1)
				}
			})
			var keys [][]byte
			for i := range 300 {
				keys = append(keys, binary.BigEndian.AppendUint64(nil, uint64(i)))
			}
			visit := func(i int, v []byte, ok bool) {
				if !ok || len(v) != 64 || !bytes.Equal(v[:32], v[32:]) {
					t.Errorf("key %d: %x %v", i, v, ok)
				}
			}
			tables := []*Table{Open(c.Machine(0), anchor), Open(c.Machine(2), anchor)}
			for round := range 200 / scale {
				if err := tables[round%2].LookupMany(keys, visit); err != nil {
					t.Error(err)
				}
			}
			stop.Store(true)
			wg.Wait()
		})
	}
}

var paired atomic.Uint64

// insertPaired puts keys whose values have two equal halves, new each time.
func insertPaired(t *testing.T, tb *Table, from, to int) {
	err := tb.m.Run(ctx, func(tx *txn.Tx) error {
		for i := from; i < to; i++ {
			half := bytes.Repeat(binary.BigEndian.AppendUint64(nil, paired.Add(1)), 4)
			if err := tb.Put(tx, binary.BigEndian.AppendUint64(nil, uint64(i)), append(half, half...)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLookupManyFails for a table that is gone.
func TestLookupManyFails(t *testing.T) {
	c := openFarm(t, 1, 1)
	m := c.Machine(0)
	tb := Open(m, createTable(t, m, Config{}))
	if err := tb.Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	other := Open(m, tb.Anchor())
	if err := other.LookupMany([][]byte{{1}}, func(int, []byte, bool) { t.Error("an answer") }); err == nil {
		t.Error("a table that is gone has answered")
	}
}

// TestLookupManyAllocates nothing if this machine is the primary.
func TestLookupManyAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop what it is given")
	}
	c, err := farm.Open(farm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tb := Open(c.Machine(0), createTable(t, c.Machine(0), Config{ValueBytes: 40}))
	insertGlanced(t, tb, 0)
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, glanceKey(i))
	}
	visit := func(int, []byte, bool) {}
	if n := testing.AllocsPerRun(1000, func() {
		if err := tb.LookupMany(keys, visit); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLookupManyForgets: a pipeline that waits for its next use refers to no keys.
func TestLookupManyForgets(t *testing.T) {
	tb := newTable(t, Config{})
	o := mustOpen(t, tb)
	l := newPipeline(o)
	l.serve(tb, o, func(int, []byte, bool) {})
	if err := l.run(slices.Repeat([][]byte{[]byte("none")}, groups*groupKeys+1)); err != nil {
		t.Fatal(err)
	}
	for i := range l.groups {
		if l.groups[i].keys != nil {
			t.Errorf("group %d has keys", i)
		}
	}
}

// movable returns a table with a key in the bucket after its home, and a function that moves the key
// to its home.
func movable(t *testing.T) (tb *Table, key []byte, move func()) {
	const buckets = 16
	tb = newTable(t, Config{Buckets: buckets})
	insert := func(keys ...[]byte) {
		for _, key := range keys {
			mustRun(t, tb.m, func(tx *txn.Tx) error { return tb.Insert(tx, key, key) })
		}
	}
	// The last two buckets and the one after them are full.
	homes, afters := keysOf(t, tb, buckets-2, 5), keysOf(t, tb, buckets-1, 8)
	insert(homes...)
	insert(afters[:7]...)
	key = homes[4]
	if !isNext(t, tb, key) {
		t.Fatal("the key is at home")
	}
	return tb, key, func() { // one more pair has room when the key moves to its home
		mustRun(t, tb.m, func(tx *txn.Tx) error { _, err := tb.Delete(tx, homes[0]); return err })
		insert(afters[7])
		if isNext(t, tb, key) {
			t.Fatal("the key has not moved")
		}
	}
}

// TestLookupManyOvertaken: a key that was seen in the bucket after its home, and is then moved to its
// home, is found, because it is in the table all the time. The pipeline answers the keys of one group
// after it has looked for those of the next.
func TestLookupManyOvertaken(t *testing.T) {
	tb, key, move := movable(t)
	keys := slices.Repeat([][]byte{[]byte("none")}, groupKeys+1)
	keys[groupKeys] = key
	found := false
	if err := tb.LookupMany(keys, func(i int, value []byte, ok bool) {
		if i == 0 {
			move()
		}
		found = found || ok && i == groupKeys && bytes.Equal(value, key)
	}); err != nil || !found {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestLookupManyBetween: if a key was not in its home before it moved there, and not in the bucket
// after that since, it does not follow that the key is absent.
func TestLookupManyBetween(t *testing.T) {
	tb, key, move := movable(t)
	l := newPipeline(mustOpen(t, tb))
	l.tb, l.o, l.op = tb, mustOpen(t, tb), tb.m.Start()
	defer l.op.End()
	look := func() *pendingLookup {
		f := &pendingLookup{sight: sight{h: sum(l.o.seed, key)}}
		if !l.op.LookPair(&f.buckets, l.o.home(&f.sight)) || !l.o.narrow(&f.sight) {
			t.Fatal("the buckets cannot be looked at")
		}
		return f
	}
	before := look()
	move()
	after := look()
	after.buckets.Views[0] = before.buckets.Views[0]
	if l.followUp(after); after.outlook != unclear {
		t.Errorf("a key that is there all the time is said to be %v", after.outlook)
	}
}

// isNext reports whether key is in the bucket after its home.
func isNext(t *testing.T, tb *Table, key []byte) bool {
	t.Helper()
	o := mustOpen(t, tb)
	op := tb.m.Start()
	defer op.End()
	s := sight{h: sum(o.seed, key)}
	if !op.LookPair(&s.buckets, o.home(&s)) {
		t.Fatal("a bucket cannot be looked at")
	}
	_, at := o.seek(&s, key, nil)
	return at == atNext
}

// keysOf returns n keys whose home is bucket home of the table's only shard.
func keysOf(t *testing.T, tb *Table, home, n int) (keys [][]byte) {
	t.Helper()
	o := mustOpen(t, tb)
	for i := uint64(0); len(keys) < n; i++ {
		key := binary.BigEndian.AppendUint64(nil, i)
		if bucketOf(sum(o.seed, key), o.buckets) == home {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestLookupManyOfTheEmptyKey: the slot of an outside pair has a key length of zero, and must not be
// taken for the slot of the empty key.
func TestLookupManyOfTheEmptyKey(t *testing.T) {
	tb := newTable(t, Config{})
	want := bytes.Repeat([]byte("outside"), 10)
	mustRun(t, tb.m, func(tx *txn.Tx) error { return tb.Put(tx, nil, want) })
	if err := tb.LookupMany([][]byte{nil}, func(_ int, value []byte, ok bool) {
		if !ok || !bytes.Equal(value, want) {
			t.Errorf("found %v: %q", ok, value)
		}
	}); err != nil {
		t.Error(err)
	}
}

// TestLookupManyOfOneKey: a value of many lines, which changes as fast as possible, is seen as one
// writer left it.
func TestLookupManyOfOneKey(t *testing.T) {
	tb := newTable(t, Config{ValueBytes: 2000, Neighbourhood: 2})
	key := []byte("key")
	put := func(n int) {
		mustRun(t, tb.m, func(tx *txn.Tx) error { return tb.Put(tx, key, bytes.Repeat([]byte{byte(n)}, 2000)) })
	}
	put(0)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; !stop.Load(); n++ {
			put(n)
		}
	})
	keys := slices.Repeat([][]byte{key}, 64)
	for range 2000 / scale {
		if err := tb.LookupMany(keys, func(i int, v []byte, ok bool) {
			if !ok || len(v) != 2000 || bytes.Count(v, v[:1]) != len(v) {
				t.Errorf("lookup %d: found %v, %d bytes of more than one writer", i, ok, len(v))
			}
		}); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
}
