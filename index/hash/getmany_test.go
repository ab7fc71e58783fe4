package hash

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// TestGetManyAgreesWithGet looks up keys, some of them twice, in transactions of machines that are
// the primary of some shards, of all, and of none, with changes of the transaction itself.
func TestGetManyAgreesWithGet(t *testing.T) {
	for name, network := range networks {
		c := openNetwork(t, 3, 2, network)
		for _, cfg := range []Config{{ValueBytes: 32}, {KeyBytes: 3, ValueBytes: 20}, {Neighbourhood: 2}, {Neighbourhood: 64}} {
			t.Run(fmt.Sprint(name, cfg.KeyBytes, cfg.ValueBytes, cfg.Neighbourhood), func(t *testing.T) {
				anchor := createTable(t, c.Machine(0), cfg)
				for first := 0; first < 1000; first += 100 {
					insertGlanced(t, Open(c.Machine(0), anchor), first)
				}
				for i := range c.Machines() {
					compareGetMany(t, Open(c.Machine(i), anchor))
				}
			})
		}
	}
}

func compareGetMany(t *testing.T, tb *Table) {
	t.Helper()
	var keys [][]byte
	for i := range 2000 { // half of them absent
		keys = append(keys, glanceKey(i))
	}
	keys = append(keys, keys[:100]...)
	for _, n := range []int{0, 1, 2, getsTogether + 1, len(keys)} {
		tx := tb.m.Begin()
		defer tx.Abort()
		if err := tb.Put(tx, glanceKey(1), []byte("own")); err != nil {
			t.Fatal(err)
		}
		if _, err := tb.Delete(tx, glanceKey(2)); err != nil {
			t.Fatal(err)
		}
		next := 0
		err := tb.GetMany(tx, keys[:n], func(i int, value []byte, ok bool) {
			if i != next {
				t.Fatalf("key %d is answered after %d others", i, next)
			}
			next++
			want, found, err := tb.Get(tx, keys[i])
			if err != nil || ok != found || !bytes.Equal(value, want) {
				t.Fatalf("key %d: %q %v, Get says %q %v %v", i, value, ok, want, found, err)
			}
		})
		if err != nil || next != n {
			t.Fatalf("%d answers for %d keys: %v", next, n, err)
		}
		if err := tx.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestGetManyRoundTrips: a hundred keys of another machine take as many waits as one key, and one
// READ each.
func TestGetManyRoundTrips(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 32})
	load(t, Open(c.Machine(0), anchor), 0, 4000, make([]byte, 32))
	tb, m := Open(c.Machine(1), anchor), c.Machine(1)
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, numberedKey(make([]byte, 16), i*40))
	}
	many := func(tx *txn.Tx) (found int, err error) {
		err = tb.GetMany(tx, keys, func(_ int, _ []byte, ok bool) {
			if ok {
				found++
			}
		})
		return found, err
	}
	one := func(tx *txn.Tx) (found int, err error) {
		for _, key := range keys {
			if _, ok, err := tb.Get(tx, key); err != nil {
				return found, err
			} else if ok {
				found++
			}
		}
		return found, nil
	}
	for name, test := range map[string]struct {
		get         func(tx *txn.Tx) (int, error)
		least, most uint64
	}{"many": {many, 1, 10}, "one": {one, 100, 120}} { // what is in chains and beside the table waits by itself
		var s txn.Stats
		for range 2 { // the first learns the directory
			tx := m.Begin()
			before := m.Stats()
			if found, err := test.get(tx); err != nil || found != len(keys) {
				t.Fatal(name, found, err)
			}
			s = m.Stats().Sub(before)
			tx.Abort()
		}
		if s.RoundTrips < test.least || s.RoundTrips > test.most || s.RemoteReads > 120 {
			t.Errorf("%s: %d round trips for %d READs", name, s.RoundTrips, s.RemoteReads)
		}
	}
}

// TestPrepareRoundTrips: a commit that changes a hundred keys of another machine waits for their buckets
// together. What is in chains and beside the table waits by itself.
func TestPrepareRoundTrips(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 32})
	load(t, Open(c.Machine(0), anchor), 0, 4000, make([]byte, 32))
	tb, m := Open(c.Machine(1), anchor), c.Machine(1)
	for round := range 2 { // the first learns the directory
		tx := m.Begin()
		for i := range 100 {
			if err := tb.Put(tx, numberedKey(make([]byte, 16), i*40), bytes.Repeat([]byte{byte(round + 1)}, 32)); err != nil {
				t.Fatal(err)
			}
		}
		before := m.Stats()
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if s := m.Stats().Sub(before); round > 0 && (s.RoundTrips > 20 || s.RemoteReads < 50) {
			t.Errorf("%d round trips for %d READs", s.RoundTrips, s.RemoteReads)
		}
	}
	for i := range 100 {
		if v, ok, err := tb.Lookup(numberedKey(make([]byte, 16), i*40), nil); err != nil || !ok || v[31] != 2 {
			t.Errorf("key %d: %x %v %v", i*40, v, ok, err)
		}
	}
}

// TestGetManyIsValidated: a change of one of the keys by another transaction is a conflict. A change
// of another key is not.
func TestGetManyIsValidated(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{ValueBytes: 40})
	insertGlanced(t, Open(c.Machine(0), anchor), 0)
	keys := [][]byte{glanceKey(1), glanceKey(2), []byte("none")}
	for i := range 2 {
		tb := Open(c.Machine(i), anchor)
		for name, want := range map[string]bool{string(glanceKey(2)): true, "none": true, string(glanceKey(5)): false, "other": false} {
			tx := tb.m.Begin()
			defer tx.Abort()
			if err := tb.GetMany(tx, keys, func(int, []byte, bool) {}); err != nil {
				t.Fatal(err)
			}
			if err := Open(c.Machine(0), anchor).PutNow(ctx, []byte(name), []byte(fmt.Sprint(i, want))); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(ctx); errors.Is(err, outcome.ErrConflict) != want {
				t.Errorf("machine %d, %q was put: %v", i, name, err)
			}
			if name == "none" {
				if _, err := Open(c.Machine(0), anchor).DeleteNow(ctx, []byte(name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestGetManyFails in a transaction that has ended, and for a table that is gone.
func TestGetManyFails(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{})
	tb := Open(c.Machine(1), anchor)
	never := func(int, []byte, bool) { t.Error("an answer") }
	tx := tb.m.Begin()
	tx.Abort()
	if err := tb.GetMany(tx, [][]byte{{1}, {2}}, never); err == nil {
		t.Error("got keys for a transaction that has ended")
	}
	if err := Open(c.Machine(0), anchor).Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	tx = tb.m.Begin()
	defer tx.Abort()
	if err := Open(c.Machine(1), anchor).GetMany(tx, [][]byte{{1}, {2}}, never); err == nil {
		t.Error("got keys of a table that is gone")
	}
}

// BenchmarkGetMany gets 100 keys of a table far larger than the caches, in a transaction each time:
// one by one, and together.
func BenchmarkGetMany(b *testing.B) {
	tb, items := benchTable(b), benchItems()
	const gets = 100
	keys := make([][]byte, gets)
	for i := range keys {
		keys[i] = make([]byte, 16)
	}
	for _, together := range []bool{false, true} {
		b.Run(fmt.Sprintf("together=%v", together), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				for i := range keys {
					numberedKey(keys[i], rnd.IntN(items))
				}
				tx := tb.m.Begin()
				if err := getAll(tx, tb, keys, together); err != nil {
					b.Fatal(err)
				}
				if err := tx.Commit(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*gets), "ns/key")
		})
	}
}

// getAll gets keys that all exist.
func getAll(tx *txn.Tx, tb *Table, keys [][]byte, together bool) error {
	found := 0
	if together {
		if err := tb.GetMany(tx, keys, func(int, []byte, bool) { found++ }); err != nil {
			return err
		}
	} else {
		for _, key := range keys {
			if _, ok, err := tb.Get(tx, key); err != nil {
				return err
			} else if ok {
				found++
			}
		}
	}
	if found != len(keys) {
		return fmt.Errorf("%d of %d keys", found, len(keys))
	}
	return nil
}
