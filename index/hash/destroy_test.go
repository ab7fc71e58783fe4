package hash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Destroy frees every object of a table and visits every pair once, no matter how often it is
// interrupted and how far a split had come.
func TestDestroy(t *testing.T) {
	for interrupt := range 12 {
		t.Run(fmt.Sprint(interrupt), func(t *testing.T) {
			c := openFarm(t, 1, 1)
			tb := Open(c.Machine(0), createTable(t, c.Machine(0), Config{Buckets: 16, Neighbourhood: 4}))
			model := map[string]string{}
			for i := range 150 {
				key, value := testKey(i), make([]byte, i%40)
				put(t, tb, key, value)
				model[string(key)] = string(value)
			}
			o := mustOpen(t, tb)
			for range interrupt % 4 { // leave a split half way
				if _, err := tb.step(ctx, o, o.first(), true); err != nil {
					t.Fatal(err)
				}
			}
			all := nodes(t, tb)
			seen := destroyInPieces(t, tb, 1+7*interrupt)
			same(t, seen, model)
			for _, p := range all {
				if _, err := tb.m.Read(p, make([]byte, p.Capacity())); !errors.Is(err, region.ErrFreed) {
					t.Fatalf("%v: %v", p, err)
				}
			}
			if err := tb.Destroy(ctx, nil); err != nil {
				t.Fatal("destroyed again:", err)
			}
			if faults, err := c.Check(context.Background(), slices.Values([]region.Ptr{})); len(faults) > 0 || err != nil {
				t.Fatal(faults, err)
			}
		})
	}
}

// destroyInPieces interrupts Destroy after every n pairs. Each time it continues with a new handle
// that has cached nothing. It returns the pairs whose transactions committed.
func destroyInPieces(t *testing.T, tb *Table, n int) map[string]string {
	seen := map[string]string{}
	for {
		ctx, cancel := context.WithCancel(ctx)
		count := 0
		done := map[string]string{}
		type begun struct{}
		err := Open(tb.m, tb.anchor).Destroy(ctx, func(t *txn.Tx, key, value []byte) error {
			if t.Local(begun{}) == nil {
				for k, v := range done {
					seen[k] = v
				}
				clear(done)
				t.SetLocal(begun{}, true)
			}
			done[string(key)] = string(value)
			if count++; count > n {
				cancel()
			}
			return ctx.Err()
		})
		stopped := ctx.Err() != nil
		cancel()
		if err == nil {
			for k, v := range done {
				seen[k] = v
			}
			return seen
		}
		if !stopped || !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		n += 5
	}
}

// The operations of a handle whose table has been destroyed fail; in a transaction they are
// conflicts.
func TestUseAfterDestroy(t *testing.T) {
	c := openFarm(t, 2, 1)
	anchor := createTable(t, c.Machine(0), Config{Buckets: 16})
	old := []*Table{Open(c.Machine(0), anchor), Open(c.Machine(1), anchor)}
	for _, tb := range old {
		put(t, tb, []byte("k"), nil)
	}
	open := old[1].m.Begin()
	defer open.Abort()
	if _, ok, err := old[1].Get(open, []byte("k")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := old[1].Put(open, []byte("l"), nil); err != nil {
		t.Fatal(err)
	}
	if err := Open(c.Machine(0), anchor).Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := open.Commit(ctx); !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("commit: %v", err)
	}
	for _, tb := range append(old, Open(c.Machine(1), anchor)) {
		if _, _, err := tb.Lookup([]byte("k"), nil); !errors.Is(err, ErrDestroyed) {
			t.Errorf("lookup: %v", err)
		}
		if err := tb.Check(ctx, Visitor{}); !errors.Is(err, ErrDestroyed) {
			t.Errorf("check: %v", err)
		}
		if err := tb.Reserve(ctx, 10000); !errors.Is(err, ErrDestroyed) {
			t.Errorf("reserve: %v", err)
		}
		for name, use := range map[string]func(tx *txn.Tx) error{
			"get":    func(tx *txn.Tx) error { _, _, err := tb.Get(tx, []byte("k")); return err },
			"has":    func(tx *txn.Tx) error { _, err := tb.Has(tx, []byte("k")); return err },
			"insert": func(tx *txn.Tx) error { return tb.Insert(tx, []byte("k"), nil) },
			"delete": func(tx *txn.Tx) error { _, err := tb.Delete(tx, []byte("k")); return err },
			"scan":   func(tx *txn.Tx) error { _, _, _, err := tb.Scan(tx).Next(); return err },
			"put": func(tx *txn.Tx) error {
				if err := tb.Put(tx, []byte("k"), nil); err != nil {
					return err
				}
				return tx.Commit(ctx)
			},
		} {
			tx := tb.m.Begin()
			if err := use(tx); !errors.Is(err, outcome.ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
			tx.Abort()
		}
	}
}

// A transaction asks a question again because a source of the answer has changed. If its handle has
// destroyed the table meanwhile, that is a conflict, too.
func TestDestroyedBeforeItAsksAgain(t *testing.T) {
	c := openFarm(t, 1, 1)
	tb := Open(c.Machine(0), createTable(t, c.Machine(0), Config{Buckets: 16}))
	put(t, tb, []byte("k"), nil)
	tx := tb.m.Begin()
	defer tx.Abort()
	if _, ok, err := tb.Get(tx, []byte("k")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	question := tx.Local(tb).(*overlay).entries[0]
	if err := tb.Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := question.Ask(nil); !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("%v", err)
	}
}
