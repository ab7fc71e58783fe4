package hash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

var ctx = context.Background()

func openFarm(t testing.TB, machines, replicas int) *farm.Local {
	t.Helper()
	return openNetwork(t, machines, replicas, local.Options{})
}

// networks are those that tests of several machines run over: in one, operations are complete when
// they are posted; in the other, they take time.
var networks = map[string]local.Options{"sync": {}, "async": {Async: true}}

func openNetwork(t testing.TB, machines, replicas int, network local.Options) *farm.Local {
	t.Helper()
	c, err := farm.Open(farm.Config{
		Machines: machines, Replicas: replicas, RegionBytes: 8 << 20, LogBytes: 1 << 20, MessageBytes: 64 << 10, Network: network,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func createTable(t testing.TB, m *txn.Machine, cfg Config) region.Ptr {
	t.Helper()
	var anchor region.Ptr
	err := m.Run(ctx, func(t *txn.Tx) (err error) {
		anchor, err = Create(t, cfg, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return anchor
}

// mustOpen returns the opened state of the table.
func mustOpen(t testing.TB, tb *Table) *opened {
	t.Helper()
	o, err := tb.open()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// newTable makes a table on a machine of its own.
func newTable(t testing.TB, cfg Config) *Table {
	t.Helper()
	m := openFarm(t, 1, 1).Machine(0)
	return Open(m, createTable(t, m, cfg))
}

// checkFarm checks that the machines hold the table's objects, the instance's root, and nothing else.
func checkFarm(t testing.TB, c *farm.Local, tb *Table) {
	t.Helper()
	faults, err := c.Check(context.Background(), slices.Values(nodes(t, tb)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Errorf("%v", f)
	}
}

// nodes returns all objects of a table.
func nodes(t testing.TB, tb *Table) []region.Ptr {
	var ptrs []region.Ptr
	if err := tb.Check(ctx, Visitor{Node: func(p region.Ptr) error { ptrs = append(ptrs, p); return nil }}); err != nil {
		t.Fatal(err)
	}
	return ptrs
}

// checkTable runs Check and returns the pairs.
func checkTable(t testing.TB, tb *Table) map[string]string {
	t.Helper()
	got, nodes := map[string]string{}, map[region.Ptr]bool{}
	err := tb.Check(ctx, Visitor{
		Pair: func(key, value []byte) error {
			if _, ok := got[string(key)]; ok {
				return fmt.Errorf("key %q twice", key)
			}
			got[string(key)] = string(value)
			return nil
		},
		Node: func(p region.Ptr) error {
			if nodes[p] {
				return fmt.Errorf("node %v twice", p)
			}
			nodes[p] = true
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func mustRun(t testing.TB, m *txn.Machine, fn func(t *txn.Tx) error) {
	t.Helper()
	if err := m.Run(ctx, fn); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, tb *Table, key, value []byte) {
	t.Helper()
	mustRun(t, tb.m, func(t *txn.Tx) error { return tb.Put(t, key, value) })
}

// A table gives the same results as a map under the same random operations, in transactions of random
// length, some of which abort or are rolled back in part.
func TestTableIsAMap(t *testing.T) {
	for _, cfg := range []Config{{Buckets: 4, MaxLoad: 60}, {Buckets: 16, Neighbourhood: 4, ValueBytes: 40}, {}} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			c := openFarm(t, 1, 1)
			tb := Open(c.Machine(0), createTable(t, c.Machine(0), cfg))
			rnd := rand.New(rand.NewPCG(1, 1))
			model := map[string]string{}
			for range 1500 / scale {
				modelTransaction(t, tb, rnd, model)
			}
			same(t, checkTable(t, tb), model)
			mustRun(t, tb.m, func(tx *txn.Tx) error { same(t, scan(t, tb, tx), model); return nil })
			checkFarm(t, c, tb)
			s := tb.Stats()
			if cfg.Buckets == 4 && s.Splits < 10/scale {
				t.Fatalf("%d splits: the table has not grown", s.Splits)
			}
		})
	}
}

func scan(t *testing.T, tb *Table, tx *txn.Tx) map[string]string {
	got := map[string]string{}
	for c := tb.Scan(tx); ; {
		key, value, ok, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return got
		}
		if _, ok := got[string(key)]; ok {
			t.Fatalf("key %q twice", key)
		}
		got[string(key)] = string(value)
	}
}

func randomKey(rnd *rand.Rand) []byte {
	key := testKey(rnd.IntN(800))
	if rnd.IntN(10) == 0 {
		key = append(key, bytes.Repeat([]byte("long"), 10)...)
	}
	return key
}

func modelTransaction(t *testing.T, tb *Table, rnd *rand.Rand, model map[string]string) {
	tx := tb.m.Begin()
	defer tx.Abort()
	view := map[string]string{}
	for k, v := range model {
		view[k] = v
	}
	for range rnd.IntN(6) {
		if rnd.IntN(5) == 0 {
			mark, before := tx.Mark(), map[string]string{}
			for k, v := range view {
				before[k] = v
			}
			for range rnd.IntN(4) {
				modelOperation(t, tb, tx, rnd, view)
			}
			if rnd.IntN(2) == 0 {
				tx.Rollback(mark)
				view = before
			}
		}
		modelOperation(t, tb, tx, rnd, view)
	}
	if rnd.IntN(100) == 0 {
		same(t, scan(t, tb, tx), view)
	}
	if rnd.IntN(5) == 0 {
		return
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	clear(model)
	for k, v := range view {
		model[k] = v
	}
}

func modelOperation(t *testing.T, tb *Table, tx *txn.Tx, rnd *rand.Rand, view map[string]string) {
	key := randomKey(rnd)
	want, had := view[string(key)]
	value := bytes.Repeat([]byte{byte(rnd.IntN(256))}, rnd.IntN(2*tb.valueBytes(t)))
	switch rnd.IntN(5) {
	case 0:
		got, ok, err := tb.Get(tx, key)
		if err != nil || ok != had || string(got) != want {
			t.Fatalf("get %q: %q, %v, %v, want %q", key, got, ok, err, want)
		}
	case 1:
		ok, err := tb.Delete(tx, key)
		if err != nil || ok != had {
			t.Fatalf("delete %q: %v, %v, want %v", key, ok, err, had)
		}
		delete(view, string(key))
	case 2:
		if err := tb.Put(tx, key, value); err != nil {
			t.Fatal(err)
		}
		view[string(key)] = string(value)
	default:
		err := tb.Insert(tx, key, value)
		if had != errors.Is(err, ErrExists) || !had && err != nil {
			t.Fatalf("insert %q: %v, was there %v", key, err, had)
		}
		if !had {
			view[string(key)] = string(value)
		}
		if ok, err := tb.Has(tx, key); !ok || err != nil {
			t.Fatalf("has %q: %v, %v", key, ok, err)
		}
	}
}

func (tb *Table) valueBytes(t testing.TB) int {
	o := mustOpen(t, tb)
	return o.anchor.layout.valueBytes
}

// Lookups find the keys that are there, whatever else happens meanwhile, and the values that they
// return were there.
func TestLookupWhileChanging(t *testing.T) {
	for name, network := range networks {
		t.Run(name, func(t *testing.T) { lookupWhileChanging(t, openNetwork(t, 3, 2, network)) })
	}
}

func lookupWhileChanging(t *testing.T, c *farm.Local) {
	anchor := createTable(t, c.Machine(0), Config{Buckets: 8, Neighbourhood: 4, ValueBytes: 24})
	const keys, fixed = 400, 100
	first := Open(c.Machine(0), anchor)
	for i := range fixed {
		put(t, first, testKey(i), fmt.Appendf(nil, "fixed%d", i))
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			tb := Open(c.Machine(w), anchor)
			rnd := rand.New(rand.NewPCG(9, uint64(w)))
			for range 1500 / scale {
				key := testKey(fixed + rnd.IntN(keys))
				err := tb.m.Run(ctx, func(tx *txn.Tx) error {
					if rnd.IntN(5) < 2 {
						_, err := tb.Delete(tx, key)
						return err
					}
					return tb.Put(tx, key, bytes.Repeat([]byte{7}, rnd.IntN(60)))
				})
				if err != nil {
					t.Error(err)
				}
			}
			stop.Store(true)
		})
	}
	for r := range 3 {
		wg.Go(func() {
			tb := OpenWith(c.Machine(r), anchor, Options{})
			rnd := rand.New(rand.NewPCG(8, uint64(r)))
			for !stop.Load() {
				i := rnd.IntN(fixed)
				v, ok, err := tb.Lookup(testKey(i), nil)
				if err != nil || !ok || string(v) != fmt.Sprintf("fixed%d", i) {
					t.Errorf("key %d: %q, %v, %v", i, v, ok, err)
					return
				}
				v, _, err = tb.Lookup(testKey(fixed+rnd.IntN(keys)), nil)
				if err != nil || bytes.Count(v, []byte{7}) != len(v) {
					t.Errorf("%q, %v", v, err)
					return
				}
			}
		})
	}
	wg.Wait()
	checkTable(t, first)
	checkFarm(t, c, first)
}

// Long transactions that insert different keys into one bucket all commit. Of those that insert the
// same key, one commits.
func TestNoFalseConflicts(t *testing.T) {
	tb := newTable(t, Config{Buckets: 4})
	var txs []*txn.Tx
	for i := range 100 {
		tx := tb.m.Begin()
		if err := tb.Insert(tx, testKey(i), nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := tb.Get(tx, testKey(i+1000)); err != nil {
			t.Fatal(err)
		}
		txs = append(txs, tx)
	}
	for i, tx := range txs {
		if err := tx.Commit(ctx); err != nil {
			t.Fatalf("transaction %d: %v", i, err)
		}
	}
	a, b := tb.m.Begin(), tb.m.Begin()
	if err := errors.Join(tb.Insert(a, []byte("same"), nil), tb.Insert(b, []byte("same"), nil)); err != nil {
		t.Fatal(err)
	}
	if err := a.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(ctx); !errors.Is(err, outcome.ErrConflict) {
		t.Fatalf("the second insert of a key: %v", err)
	}
	if got := len(checkTable(t, tb)); got != 101 {
		t.Fatalf("%d keys", got)
	}
}

// A transaction aborts if and only if an answer that it was given is no longer true.
func TestAnswersMustHold(t *testing.T) {
	key := []byte("k")
	get := func(tb *Table, t *txn.Tx) error { _, _, err := tb.Get(t, key); return err }
	has := func(tb *Table, t *txn.Tx) error { _, err := tb.Has(t, key); return err }
	all := func(tb *Table, t *txn.Tx) error {
		for c := tb.Scan(t); ; {
			if _, _, ok, err := c.Next(); !ok || err != nil {
				return err
			}
		}
	}
	putKey := func(v string) func(tb *Table, t *txn.Tx) error {
		return func(tb *Table, t *txn.Tx) error { return tb.Put(t, key, []byte(v)) }
	}
	remove := func(tb *Table, t *txn.Tx) error { _, err := tb.Delete(t, key); return err }
	crowd := func(tb *Table, t *txn.Tx) error { // others, in the same buckets, moving key about
		for i := range 60 {
			if err := tb.Put(t, testKey(i), nil); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		name          string
		before        func(tb *Table, t *txn.Tx) error
		read, between func(tb *Table, t *txn.Tx) error
		conflict      bool
	}{
		{"get, value changes", putKey("1"), get, putKey("2"), true},
		{"get, same value again", putKey("1"), get, putKey("1"), false},
		{"get, long value changes", putKey(string(make([]byte, 100))), get, putKey(string(make([]byte, 101))), true},
		{"has, value changes", putKey("1"), has, putKey("2"), false},
		{"has, becomes long", putKey("1"), has, putKey(string(make([]byte, 100))), false},
		{"has, removed", putKey("1"), has, remove, true},
		{"get absent, comes", nil, get, putKey("1"), true},
		{"get absent, others come", nil, get, crowd, false},
		{"get, others come", putKey("1"), get, crowd, false},
		{"get long, others come", putKey(string(make([]byte, 100))), get, crowd, false},
		{"scan, one comes", nil, all, putKey("1"), true},
		{"scan, one goes", putKey("1"), all, remove, true},
		{"scan, value changes", putKey("1"), all, putKey("2"), true},
		{"scan, same value", putKey("1"), all, putKey("1"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTable(t, Config{Buckets: 4})
			if c.before != nil {
				mustRun(t, tb.m, func(tx *txn.Tx) error { return c.before(tb, tx) })
			}
			tx := tb.m.Begin()
			defer tx.Abort()
			if err := c.read(tb, tx); err != nil {
				t.Fatal(err)
			}
			if err := tb.Put(tx, []byte("mine"), nil); err != nil {
				t.Fatal(err)
			}
			mustRun(t, tb.m, func(tx *txn.Tx) error { return c.between(tb, tx) })
			if c.name == "get, others come" || c.name == "get absent, others come" {
				o, _ := tb.open()
				for range 50 { // and the shard splits
					o.growth.want(o.first())
					tb.maintain(o)
				}
				if tb.Stats().Splits == 0 {
					t.Fatal("no split")
				}
			}
			if err := tx.Commit(ctx); c.conflict != errors.Is(err, outcome.ErrConflict) || !c.conflict && err != nil {
				t.Fatalf("commit: %v, want a conflict: %v", err, c.conflict)
			}
		})
	}
}

// Many clients on several machines work on one small table, each with several statements in a
// transaction and pauses between them. No client meets a conflict.
func TestManyOpenTransactions(t *testing.T) {
	c := openFarm(t, 3, 3)
	anchor := createTable(t, c.Machine(0), Config{Buckets: 16})
	tables := []*Table{Open(c.Machine(0), anchor), Open(c.Machine(1), anchor), Open(c.Machine(2), anchor)}
	put(t, tables[0], []byte("parent"), []byte("0"))
	const clients, rounds = 24, 12
	var wg sync.WaitGroup
	for w := range clients {
		tb := tables[w%3]
		wg.Go(func() {
			for r := range rounds {
				tx := tb.m.Begin()
				var err error
				if ok, failed := tb.Has(tx, []byte("parent")); !ok || failed != nil {
					err = errors.Join(failed, errors.New("no parent"))
				}
				for i := range 4 {
					time.Sleep(time.Duration(w%3) * time.Millisecond)
					err = errors.Join(err, tb.Insert(tx, fmt.Appendf(nil, "%d/%d/%d", w, r, i), nil))
				}
				if w == 0 { // the parent's other columns change all the time
					err = errors.Join(err, tb.Put(tx, []byte("parent"), fmt.Append(nil, r)))
				}
				if r > 0 && err == nil {
					var ok bool
					if ok, err = tb.Delete(tx, fmt.Appendf(nil, "%d/%d/0", w, r-1)); !ok && err == nil {
						err = errors.New("own key is gone")
					}
				}
				if err == nil {
					err = tx.Commit(ctx)
				}
				tx.Abort()
				if err != nil {
					t.Errorf("client %d, round %d: %v", w, r, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := len(checkTable(t, tables[0])), 1+clients*(4*rounds-(rounds-1)); got != want {
		t.Errorf("%d pairs, want %d", got, want)
	}
}
