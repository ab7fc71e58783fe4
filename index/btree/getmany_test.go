package btree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// TestGetManyAgreesWithGet looks up keys in order and in no order, some of them twice and a third of
// them absent, with changes of the transaction itself, with a warm and a cold cache.
func TestGetManyAgreesWithGet(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, smallNodes)
	insertRange(t, trees[0], 0, 1000)
	var ascending, any [][]byte
	for i := range 1500 {
		ascending = append(ascending, intKey(i))
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(1500) {
		any = append(any, intKey(i), intKey(i/2))
	}
	for _, tr := range trees {
		for _, keys := range [][][]byte{nil, ascending[:1], ascending[:2], ascending, any, any[:getsTogether+1]} {
			for range 2 {
				tx := tr.m.Begin()
				compareGetMany(t, tr, tx, keys)
				if err := tx.Validate(); err != nil {
					t.Error(err)
				}
				tx.Abort()
			}
			tr.cache.reset()
		}
	}
}

func compareGetMany(t *testing.T, tr *Tree, tx *txn.Tx, keys [][]byte) {
	t.Helper()
	if err := tr.Put(tx, intKey(1), rowPtr(7)); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Delete(tx, intKey(2)); err != nil {
		t.Fatal(err)
	}
	next := 0
	err := tr.GetMany(tx, keys, func(i int, v region.Ptr, ok bool) {
		if i != next {
			t.Fatalf("key %d is answered after %d others", i, next)
		}
		next++
		want, found, err := tr.Get(tx, keys[i])
		if err != nil || ok != found || v != want {
			t.Fatalf("key %d: %v %v, Get says %v %v %v", i, v, ok, want, found, err)
		}
	})
	if err != nil || next != len(keys) {
		t.Fatalf("%d answers for %d keys: %v", next, len(keys), err)
	}
}

// TestGetManyRoundTrips: a hundred keys of another machine take as many waits as one key, in any
// order. Keys of one leaf take one READ.
func TestGetManyRoundTrips(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 5000)
	tr := trees[1]
	var spread, near, back [][]byte
	for i := range 100 {
		spread, near = append(spread, intKey(i*50)), append(near, intKey(2000+i))
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(100) {
		back = append(back, intKey(2000+i))
	}
	for name, test := range map[string]struct {
		keys               [][]byte
		trips, least, most uint64
	}{"spread": {spread, 1, 20, 100}, "near": {near, 1, 1, 15}, "near, in no order": {back, 1, 1, 15}, "one": {near[:1], 1, 1, 1}} {
		var s txn.Stats
		for range 2 { // the first learns where leaves are
			tx := tr.m.Begin()
			before := tr.m.Stats()
			if err := tr.GetMany(tx, test.keys, func(i int, _ region.Ptr, ok bool) {
				if !ok {
					t.Errorf("%s: key %d is not there", name, i)
				}
			}); err != nil {
				t.Fatal(err)
			}
			s = tr.m.Stats().Sub(before)
			tx.Abort()
		}
		if s.RoundTrips != test.trips || s.RemoteReads < test.least || s.RemoteReads > test.most {
			t.Errorf("%s: %d round trips for %d READs", name, s.RoundTrips, s.RemoteReads)
		}
	}
}

// TestGetManyIsValidated: a change of one of the keys by another transaction is a conflict. A change
// of another key in the same leaf is not.
func TestGetManyIsValidated(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 50)
	keys := [][]byte{intKey(10), intKey(11), intKey(100)}
	for i, tr := range trees {
		for k, want := range map[int]bool{11: true, 100: true, 12: false, 101 + i: false} {
			tx := tr.m.Begin()
			defer tx.Abort()
			if err := tr.GetMany(tx, keys, func(int, region.Ptr, bool) {}); err != nil {
				t.Fatal(err)
			}
			must(t, trees[0].m, func(tx *txn.Tx) error { return trees[0].Put(tx, intKey(k), rowPtr(1000+i)) })
			if err := tx.Commit(ctx); errors.Is(err, outcome.ErrConflict) != want {
				t.Errorf("machine %d, %d was put: %v", i, k, err)
			}
			if k == 100 {
				must(t, trees[0].m, func(tx *txn.Tx) error { _, err := trees[0].Delete(tx, intKey(k)); return err })
			}
		}
	}
}

// TestGetManyFails for keys that are too long, in a transaction that has ended, and for a tree that
// is gone.
func TestGetManyFails(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 50)
	tr := trees[1]
	answers := 0
	count := func(int, region.Ptr, bool) { answers++ }
	tx := tr.m.Begin()
	if err := tr.GetMany(tx, [][]byte{intKey(1), []byte(strings.Repeat("k", MaxKeyBytes+1))}, count); err != ErrKeyTooLong || answers != 1 {
		t.Error(err, answers)
	}
	tx.Abort()
	if err := tr.GetMany(tx, [][]byte{intKey(1), intKey(2)}, count); err == nil || answers != 1 {
		t.Error("got keys for a transaction that has ended")
	}
	if err := trees[0].Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	tx = tr.m.Begin()
	defer tx.Abort()
	tr.cache.reset()
	if err := tr.GetMany(tx, [][]byte{intKey(1), intKey(2)}, count); !errors.Is(err, ErrDestroyed) || answers != 1 {
		t.Error(err, answers)
	}
}

// BenchmarkGetMany gets 100 keys and reads their rows, in a transaction each time: one by one, and
// together.
func BenchmarkGetMany(b *testing.B) {
	local, remote := openRows(b)
	for _, c := range []struct {
		name string
		tr   *Tree
	}{{"local", local}, {"remote", remote}} {
		for _, together := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/together=%v", c.name, together), func(b *testing.B) { benchmarkGets(b, c.tr, together) })
		}
	}
}

func benchmarkGets(b *testing.B, tr *Tree, together bool) {
	const gets = 100
	r := rand.New(rand.NewPCG(1, 1))
	keys, rows := make([][]byte, gets), make([]region.Ptr, gets)
	b.ReportAllocs()
	before, taken := tr.m.Stats(), cputime.Now(b)
	n := 0
	for b.Loop() {
		n++
		for i := range keys {
			keys[i] = intKey(r.IntN(benchRows()))
		}
		tx := tr.m.Begin()
		if err := getRows(tx, tr, keys, rows, together); err != nil {
			b.Fatal(err)
		}
		if err := tx.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	taken = cputime.Now(b) - taken
	b.ReportMetric(float64(taken.Nanoseconds())/float64(n), "cpu-ns/op")
	b.ReportMetric(float64(tr.m.Stats().Sub(before).RoundTrips)/float64(n), "round-trips/op")
}

// getRows gets keys, which all are there, and reads their rows.
func getRows(tx *txn.Tx, tr *Tree, keys [][]byte, rows []region.Ptr, together bool) error {
	if together {
		if err := tr.GetMany(tx, keys, func(i int, v region.Ptr, _ bool) { rows[i] = v }); err != nil {
			return err
		}
		tx.ReadAhead(rows)
	}
	for i := range keys {
		if !together {
			var err error
			if rows[i], _, err = tr.Get(tx, keys[i]); err != nil {
				return err
			}
		}
		if _, err := tx.Read(rows[i]); err != nil {
			return err
		}
	}
	return nil
}
