package hash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Three machines insert, remove and read at once while the table grows from one shard to many. Nobody
// waits for another machine, nothing is lost, and single operations on different keys never conflict.
func TestGrowthWhileInUse(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) { growWhileInUse(t, openNetwork(t, 3, 3, network)) })
	}
}

func growWhileInUse(t *testing.T, c *farm.Local) {
	anchor := createTable(t, c.Machine(0), Config{Buckets: 8, Neighbourhood: 4, MaxLoad: 70})
	const each = 1200 / scale / 3 * 3
	var wg sync.WaitGroup
	tables := make([]*Table, 3)
	for w := range tables {
		tb := Open(c.Machine(w), anchor)
		tables[w] = tb
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range each {
				key := fmt.Appendf(nil, "%d-%d", w, i)
				tx := tb.m.Begin()
				err := tb.Insert(tx, key, fmt.Append(nil, i))
				if i%3 == 2 && err == nil {
					var ok bool
					if ok, err = tb.Delete(tx, fmt.Appendf(nil, "%d-%d", w, i-1)); err == nil && !ok {
						err = errors.New("a key is gone")
					}
				}
				if err == nil {
					err = tx.Commit(ctx)
				}
				tx.Abort()
				if err != nil {
					t.Errorf("machine %d, insert %d: %v", w, i, err)
					return
				}
				old := rnd.IntN(i + 1)
				v, ok, err := tb.Lookup(fmt.Appendf(nil, "%d-%d", w, old), nil)
				want := old%3 != 1 || i < old+1
				if err != nil || ok != want || ok && string(v) != fmt.Sprint(old) {
					t.Errorf("machine %d: lookup of %d after %d: %q, %v, %v", w, old, i, v, ok, err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := checkTable(t, tables[0])
	checkFarm(t, c, tables[0])
	if len(got) != 3*each*2/3 {
		t.Errorf("%d pairs, want %d", len(got), 3*each*2/3)
	}
	var splits, refreshes uint64
	for _, tb := range tables {
		s := tb.Stats()
		splits, refreshes = splits+s.Splits, refreshes+s.Refreshes
	}
	if splits < 30/scale || refreshes < 30/scale {
		t.Errorf("%d splits, %d stale directories noticed: too few to show anything", splits, refreshes)
	}
}

// A machine whose directory has one shard finds every key after another machine has split that shard
// into many. It reads the header of each shard once to learn the directory.
func TestStaleDirectory(t *testing.T) {
	c := openFarm(t, 3, 1)
	anchor := createTable(t, c.Machine(0), Config{Buckets: 16, ValueBytes: 8})
	old := make([]*Table, 3)
	for i := range old {
		old[i] = Open(c.Machine(i), anchor)
		if _, ok, err := old[i].Lookup([]byte("nothing"), nil); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	const items = 3000
	load(t, old[0], 0, items, []byte("v"))
	shards := old[0].Stats().Shards
	if shards < 32 {
		t.Fatalf("%d shards", shards)
	}
	var key [16]byte
	for range 2 {
		for i := range items {
			if _, ok, err := old[1].Lookup(numberedKey(key[:], i), nil); !ok || err != nil {
				t.Fatalf("lookup %d: %v, %v", i, ok, err)
			}
			mustRun(t, old[2].m, func(tx *txn.Tx) error {
				if _, ok, err := old[2].Get(tx, numberedKey(key[:], i)); !ok || err != nil {
					t.Fatalf("get %d: %v, %v", i, ok, err)
				}
				return nil
			})
		}
	}
	for i, tb := range old[1:] {
		s := tb.Stats()
		if s.Shards != shards || s.Refreshes > uint64(shards) {
			t.Errorf("machine %d knows %d of %d shards after %d refreshes", i+1, s.Shards, shards, s.Refreshes)
		}
	}
	// A machine that writes with a stale directory puts its keys where others look for them.
	late := Open(c.Machine(1), anchor)
	load(t, late, items, 500, []byte("w"))
	if got := len(checkTable(t, old[0])); got != items+500 {
		t.Errorf("%d pairs", got)
	}
}

// A split can stop between any two of its transactions. The table is complete then, and any machine
// can finish the split.
func TestSplitStopsAnywhere(t *testing.T) {
	tb := newTable(t, Config{Buckets: 64, MaxLoad: 100})
	const items = 230
	load(t, tb, 0, items, nil)
	o := mustOpen(t, tb)
	var key [16]byte
	for step := 0; ; step++ {
		fresh := Open(tb.m, tb.anchor) // knows nothing
		for i := range items {
			if _, ok, err := fresh.Lookup(numberedKey(key[:], i), nil); !ok || err != nil {
				t.Fatalf("step %d, key %d: %v, %v", step, i, ok, err)
			}
		}
		mustRun(t, tb.m, func(tx *txn.Tx) error {
			if got := len(scan(t, fresh, tx)); got != items {
				t.Fatalf("step %d: a scan finds %d pairs", step, got)
			}
			return nil
		})
		put(t, fresh, numberedKey(key[:], step), []byte("new")) // through a directory that is stale
		if got := len(checkTable(t, fresh)); got != items {
			t.Fatalf("step %d: %d pairs", step, got)
		}
		h, err := tb.refresh(o, o.first())
		if err != nil {
			t.Fatal(err)
		}
		if h.depth == 2 {
			break
		}
		// The child can split only after its parent's split is complete. A step before that does no
		// harm.
		if h.state == splitting {
			if again, err := tb.step(ctx, o, o.first().child.Load(), false); again || err != nil {
				t.Fatal(again, err)
			}
		}
		if _, err := tb.step(ctx, o, o.first(), true); err != nil {
			t.Fatal(err)
		}
	}
	if s := tb.Stats(); s.Splits != 2 {
		t.Errorf("%d splits", s.Splits)
	}
}

// Shards are at the table's places, whichever machine creates them.
func TestPlaces(t *testing.T) {
	c := openFarm(t, 3, 1)
	places := make([]region.Addr, 3)
	for i := range places {
		Serve(c.Machine(i))
		mustRun(t, c.Machine(i), func(tx *txn.Tx) error {
			p, _, err := tx.Alloc(64, 0)
			places[i] = p.Addr
			return err
		})
	}
	tb := Open(c.Machine(0), createTable(t, c.Machine(0), Config{Buckets: 16, Places: places}))
	if err := tb.Reserve(ctx, 12*16*4*85/100); err != nil {
		t.Fatal(err)
	}
	load(t, tb, 0, 700, nil)
	o := mustOpen(t, tb)
	count := map[int]int{}
	r := o.dir.table.Load()
	for i := range r.shards {
		for m := range 3 {
			if c.Machine(m).IsPrimary(r.shards[i].Load().first.Addr) {
				count[m]++
			}
		}
	}
	if len(r.shards) != 16 || count[0] != 6 || count[1] != 5 || count[2] != 5 {
		t.Errorf("%d shards, by machine %v", len(r.shards), count)
	}
	homes := map[region.Addr]bool{}
	for i := range 700 {
		home, err := tb.Home(numberedKey(make([]byte, 16), i))
		if err != nil {
			t.Fatal(err)
		}
		homes[home] = true
	}
	for i := range r.shards {
		if !homes[r.shards[i].Load().first.Addr] {
			t.Errorf("shard %d is no key's home", i)
		}
	}
	if _, err := Open(c.Machine(0), region.Ptr{}).Home([]byte("key")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a home in no table: %v", err)
	}
	if got := len(checkTable(t, tb)); got != 700 {
		t.Errorf("%d pairs", got)
	}
}

// Keys that were chosen to have the same hash make long chains, and do no other harm: the table does
// not split for ever, and loses none of them.
func TestOneHash(t *testing.T) {
	tb := newTable(t, Config{Buckets: 4})
	o := mustOpen(t, tb)
	var keys [][]byte
	for i := uint64(0); len(keys) < 120; i++ {
		key := binary.LittleEndian.AppendUint64(nil, i)
		if h := sum(o.seed, key); h>>56 == 0 && bucketOf(h, 4) == 1 {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		put(t, tb, key, key)
	}
	for _, key := range keys {
		if v, ok, err := tb.Lookup(key, nil); !ok || err != nil || !bytes.Equal(v, key) {
			t.Fatal(v, ok, err)
		}
	}
	if got := len(checkTable(t, tb)); got != len(keys) {
		t.Fatalf("%d keys", got)
	}
	if s := tb.Stats(); s.Shards > 16 {
		t.Errorf("%d shards for keys of one bucket", s.Shards)
	}
	for _, key := range keys {
		mustRun(t, tb.m, func(tx *txn.Tx) error { _, err := tb.Delete(tx, key); return err })
	}
	if got := len(checkTable(t, tb)); got != 0 {
		t.Fatalf("%d keys left", got)
	}
}

// A transaction may add far more pairs than the table has room for: the table
// grows while the transaction is still collecting them.
func TestLargeTransaction(t *testing.T) {
	tb := newTable(t, Config{Buckets: 32})
	load(t, tb, 0, 100, nil)
	const items = 1500
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		for i := range items {
			if err := tb.Put(tx, testKey(i), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if got := len(checkTable(t, tb)); got != items+100 {
		t.Errorf("%d pairs", got)
	}
	if s := tb.Stats(); s.Shards < 8 {
		t.Errorf("%d shards for %d pairs", s.Shards, items)
	}
}

// A table can be filled in the transaction that creates it.
func TestCreateAndFill(t *testing.T) {
	m := openFarm(t, 1, 1).Machine(0)
	for _, commit := range []bool{false, true} {
		var tb *Table
		tx := m.Begin()
		anchor, err := Create(tx, Config{Buckets: 16}, 0)
		if err != nil {
			t.Fatal(err)
		}
		tb = Open(m, anchor)
		for i := range 100 {
			if err := tb.Insert(tx, testKey(i), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := tb.Insert(tx, testKey(3), nil); !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		if v, ok, err := tb.Get(tx, testKey(7)); !ok || err != nil || string(v) != "7" {
			t.Fatal(v, ok, err)
		}
		if ok, err := tb.Has(tx, testKey(100)); ok || err != nil {
			t.Fatal(ok, err)
		}
		if got := len(scan(t, tb, tx)); got != 100 {
			t.Fatalf("%d pairs", got)
		}
		if !commit {
			tx.Abort()
			if _, _, err := tb.Lookup(testKey(1), nil); !errors.Is(err, ErrDestroyed) {
				t.Fatal(err)
			}
			continue
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(checkTable(t, tb)); got != 100 {
			t.Fatalf("%d pairs", got)
		}
	}
}

// With the smallest possible logs and regions, a table with the default configuration can grow.
func TestSmallLogs(t *testing.T) {
	c, err := farm.Open(farm.Config{RegionBytes: 1 << 20, LogBytes: 64 << 10, MessageBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := c.Machine(0)
	tb := Open(m, createTable(t, m, Config{}))
	const items = 1000
	for i := range items {
		put(t, tb, testKey(i), nil)
	}
	if got, s := len(checkTable(t, tb)), tb.Stats(); got != items || s.Splits == 0 {
		t.Errorf("%d pairs, %+v", got, s)
	}
}

// After the processes of all machines have been restarted, even in the middle of a split, the table
// is complete and continues to grow.
func TestRestart(t *testing.T) {
	cfg := farm.Config{Machines: 2, Replicas: 2, RegionBytes: 8 << 20, LogBytes: 1 << 20, MessageBytes: 64 << 10, Volatile: farm.NewVolatile()}
	c, err := farm.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tb := Open(c.Machine(0), createTable(t, c.Machine(0), Config{Buckets: 32, Neighbourhood: 4}))
	load(t, tb, 0, 300, []byte("v"))
	o := mustOpen(t, tb)
	for range 2 {
		if _, err := tb.step(ctx, o, o.first(), true); err != nil {
			t.Fatal(err)
		}
	}
	want := checkTable(t, tb)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = farm.Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tb = Open(c.Machine(1), tb.anchor)
	same(t, checkTable(t, tb), want)
	if o, err = tb.open(); err != nil {
		t.Fatal(err)
	}
	if h, err := tb.refresh(o, o.first()); err != nil || h.state != splitting || h.cursor != splitHomes {
		t.Fatalf("%+v, %v", h, err)
	}
	load(t, tb, 300, 700, []byte("v"))
	if got := len(checkTable(t, tb)); got != 1000 {
		t.Errorf("%d pairs", got)
	}
}

// Values that are pointers.
func TestPointers(t *testing.T) {
	tb := newTable(t, Config{ValueBytes: region.PtrBytes})
	want := region.MakePtr(region.MakeAddr(3, 128), 4, 5)
	mustRun(t, tb.m, func(tx *txn.Tx) error {
		return errors.Join(tb.Put(tx, []byte("p"), want.Append(nil)), tb.Put(tx, []byte("x"), []byte("short")))
	})
	get := func(key string) (p region.Ptr, ok bool, err error) {
		mustRun(t, tb.m, func(tx *txn.Tx) error { p, ok, err = tb.GetPtr(tx, []byte(key)); return nil })
		return p, ok, err
	}
	for name, f := range map[string]func(key string) (region.Ptr, bool, error){
		"lookup": func(key string) (region.Ptr, bool, error) { return tb.LookupPtr([]byte(key)) }, "get": get,
	} {
		if p, ok, err := f("p"); p != want || !ok || err != nil {
			t.Errorf("%s: %v, %v, %v", name, p, ok, err)
		}
		if _, ok, err := f("none"); ok || err != nil {
			t.Errorf("%s of an absent key: %v, %v", name, ok, err)
		}
		if _, ok, err := f("x"); ok || !errors.Is(err, region.ErrBadPtr) {
			t.Errorf("%s of something else: %v, %v", name, ok, err)
		}
	}
}

// Steps of several shards go on at the same time. No shard has two, and there are no more steps than
// processors.
func TestStepsAtTheSameTime(t *testing.T) {
	g := growth{most: 2}
	a, b, c := &shard{}, &shard{}, &shard{}
	for _, s := range []*shard{a, b, a, c} {
		g.want(s)
	}
	if first, second := g.begin(notBlocked), g.begin(notBlocked); first != a || second != b {
		t.Fatal("the first two do not begin in the order of the queue")
	}
	if n := g.startable.Load(); n != 0 || g.begin(notBlocked) != nil {
		t.Errorf("a third begins, with two processors: %d may", n)
	}
	g.end(a, true)
	if n := g.startable.Load(); n != 1 {
		t.Errorf("%d steps may begin, with two queued and one going on", n)
	}
	if s := g.begin(notBlocked); s != c {
		t.Error("the third does not begin after the first")
	}
	g.end(b, false)
	g.end(c, false)
	if s := g.begin(notBlocked); s != a || g.begin(notBlocked) != nil {
		t.Error("a shard that needs more steps is not queued once")
	}
}

func notBlocked(*shard) bool { return false }

// A step by Reserve counts among the steps and is the only step of its shard. If the shard was
// queued, it stays queued.
func TestForcedSteps(t *testing.T) {
	g := growth{most: 1}
	a, b := &shard{}, &shard{}
	g.want(a)
	if !g.beginOf(a) || g.beginOf(a) {
		t.Fatal("not exactly one step of a shard begins")
	}
	g.want(b)
	if g.begin(notBlocked) != nil {
		t.Error("a step begins beside a forced one, with one processor")
	}
	g.end(a, false)
	if first := g.begin(notBlocked); first != b || g.beginOf(b) {
		t.Error("the other shard's step does not begin, or twice")
	}
	g.end(b, false)
	if g.begin(notBlocked) != a {
		t.Error("a shard that was queued before its forced step is not queued any more")
	}
}

// A shard that was wanted is split in the end, even if it was wanted while a step of it went on,
// while the queue was full, or while its parent was being split.
func TestWantedIsKept(t *testing.T) {
	tb := newTable(t, Config{Buckets: 64})
	o := mustOpen(t, tb)
	s, g := o.first(), &o.growth
	overflow := func() { o.note(&editor{shard: s, overflowed: int(o.overflowsMost())}) }
	queued := func() bool {
		found := g.begin(notBlocked)
		if found != nil {
			g.end(found, false)
		}
		return found == s
	}

	overflow()
	if g.begin(notBlocked) != s {
		t.Fatal("a shard with overflows is not queued")
	}
	overflow() // the step may have counted the load before
	if g.end(s, false); !queued() {
		t.Error("a shard that was wanted during its step is forgotten")
	}

	for range queueMax {
		g.want(&shard{})
	}
	overflow()
	for g.startable.Load() > 0 {
		g.end(g.begin(notBlocked), false)
	}
	if o.note(&editor{shard: s, overflowed: 1}); !queued() {
		t.Error("a shard that found the queue full is not queued by its next overflow")
	}

	for range 2 {
		if _, err := tb.step(ctx, o, s, true); err != nil {
			t.Fatal(err)
		}
	}
	parent := s
	s = parent.child.Load()
	if _, err := tb.step(ctx, o, s, false); err != nil || g.begin(notBlocked) != parent {
		t.Fatalf("the parent of a shard that is being filled is not queued: %v", err)
	}
	g.end(parent, false)
	if o.note(&editor{shard: s, overflowed: 1}); !queued() {
		t.Error("a shard whose parent was being split is not queued by its next overflow")
	}
}

// A step that panics counts as ended.
func TestPanicEndsStep(t *testing.T) {
	tb := newTable(t, Config{Buckets: 64})
	o := mustOpen(t, tb)
	if !o.growth.beginOf(o.first()) {
		t.Fatal("a step is going on")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a step of a table without a machine does not panic")
			}
		}()
		new(Table).stepOnce(o, o.first())
	}()
	if n := len(o.growth.steps); n != 0 {
		t.Errorf("%d steps are going on", n)
	}
}

// Transactions do no step of a shard whose region is blocked, because they would wait for its
// recovery. The step is done once the region is active.
func TestNoStepInBlockedRegion(t *testing.T) {
	c := openFarm(t, 2, 1)
	there := Open(c.Machine(1), createTable(t, c.Machine(1), Config{Buckets: 64}))
	load(t, there, 0, 10, nil)
	m := c.Machine(0)
	tb := Open(m, there.anchor)
	o := mustOpen(t, tb)
	s := o.first()
	at := cluster.Placement{Region: s.first.Addr.Region(), Primary: c.Machine(1).ID()}
	elsewhere := at
	elsewhere.Primary = m.ID()
	m.Remap(&cluster.Configuration{NextRegion: at.Region + 1, Regions: []cluster.Placement{elsewhere}},
		func(region.ID) *region.Region { return nil })
	o.growth.want(s)
	for range 3 { // if it did the step, it would wait for Config.Patience, and the step would fail
		tb.maintain(o)
	}
	if n := o.growth.startable.Load(); n != 1 {
		t.Fatalf("%d steps may begin: the step of a shard in a blocked region has been done", n)
	}
	m.AddRegion(at, nil)
	tb.maintain(o)
	if n := o.growth.startable.Load(); n != 0 {
		t.Errorf("%d steps may begin: the step was not done in an active region", n)
	}
}

// Lookups load the fields of opened around growth, and changes load startable: none of them is on a
// line, or a pair of lines, with what steps write.
func TestGrowthLines(t *testing.T) {
	const apart = 2 * prefetch.LineBytes
	g := reflect.TypeFor[growth]()
	end := uintptr(0)
	for _, name := range []string{"startable", "reserving"} {
		f, ok := g.FieldByName(name)
		if !ok || f.Offset < end+apart {
			t.Errorf("%s begins at %d, what comes before ends at %d", name, f.Offset, end)
		}
		end = f.Offset + f.Type.Size()
	}
	if last, ok := g.FieldByName("steps"); !ok || g.Size() < last.Offset+last.Type.Size()+apart {
		t.Errorf("%d bytes end with too little padding: steps is at %d", g.Size(), last.Offset)
	}
}
