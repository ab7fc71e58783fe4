package btree

import (
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// TestFetchLeads: Fetch finds the leaf in which the key is found later, once the way there is cached.
// It makes nothing part of the transaction's reads.
func TestFetchLeads(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	insertRange(t, trees[0], 0, 500)
	for i, tr := range trees {
		tr.cache.reset()
		tx := tr.m.Begin()
		defer tx.Abort()
		if p := tr.prefetch(tx, intKey(250)); !p.IsNil() {
			t.Errorf("machine %d: leaf %v although nothing is cached", i, p)
		}
		if _, _, err := tr.Lookup(intKey(250)); err != nil {
			t.Fatal(err)
		}
		leaf := tr.prefetch(tx, intKey(250))
		must(t, trees[1-i].m, func(tx *txn.Tx) error { return trees[1-i].Put(tx, intKey(250), rowPtr(1000+i)) })
		if err := tx.Validate(); err != nil {
			t.Errorf("machine %d: what was only fetched is part of what was read: %v", i, err)
		}
		if _, ok, err := tr.Get(tx, intKey(250)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if src := tr.pendingOf(tx).latest.src[0].Ptr; src != leaf {
			t.Errorf("machine %d: fetched %v, the key was in %v", i, leaf, src)
		}
		tr.Fetch(tx, intKey(250))
		if err := tx.Commit(ctx); err != nil {
			t.Error(err)
		}
		tr.Fetch(tx, intKey(250)) // of a transaction that has ended
	}
}

// TestPreparedWhereFound: while the tree does not change, Prepare reads the leaf that an operation
// has found, and searches for no other.
func TestPreparedWhereFound(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, Config{})[0]
	insertRange(t, tr, 0, 100)
	for name, op := range map[string]func(*txn.Tx) error{
		"put":    func(tx *txn.Tx) error { return tr.Put(tx, intKey(10), rowPtr(1)) },
		"insert": func(tx *txn.Tx) error { return tr.Insert(tx, intKey(100), rowPtr(1)) },
		"delete": func(tx *txn.Tx) error { _, err := tr.Delete(tx, intKey(20)); return err },
	} {
		if _, _, err := tr.Lookup(intKey(10)); err != nil {
			t.Fatal(err)
		}
		tx := c.Machine(0).Begin()
		defer tx.Abort()
		if err := op(tx); err != nil {
			t.Fatal(name, err)
		}
		before := c.Machine(0).Stats()
		tr.cache.reset() // who looks for a leaf now reads all from the anchor on
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(name, err)
		}
		if n := c.Machine(0).Stats().Sub(before).LocalReads; n != 1 {
			t.Errorf("%s: %d objects read to prepare it, want the leaf", name, n)
		}
	}
}

// TestLeafOfAChangeMoves: transactions commit although the leaves in which they
// found their keys have been split, merged and freed since.
func TestLeafOfAChangeMoves(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	insertRange(t, trees[0], 0, 1000)
	model := map[string]region.Ptr{}
	var open []*txn.Tx
	for i := range 100 {
		tr := trees[i%2]
		if _, _, err := tr.Lookup(intKey(i * 10)); err != nil {
			t.Fatal(err)
		}
		tx := tr.m.Begin()
		defer tx.Abort()
		if err := tr.Put(tx, intKey(i*10), rowPtr(i)); err != nil {
			t.Fatal(err)
		}
		if tr.pendingOf(tx).changes[0].leaf.IsNil() {
			t.Fatal("no leaf is known")
		}
		model[string(intKey(i*10))] = rowPtr(i)
		open = append(open, tx)
	}
	for i := 1000; i < 5000; i++ { // between the others, to split them
		must(t, c.Machine(0), func(tx *txn.Tx) error {
			return trees[0].Put(tx, append(intKey(i%1000), byte(i/1000)), rowPtr(i))
		})
	}
	commit := func(txs []*txn.Tx) {
		t.Helper()
		for _, tx := range txs {
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	commit(open[:50])
	for i := range 5000 { // and to merge them
		must(t, c.Machine(1), func(tx *txn.Tx) error {
			key := intKey(i % 1000)
			if i >= 1000 {
				key = append(key, byte(i/1000))
			} else if _, ok := model[string(key)]; ok {
				return nil
			}
			_, err := trees[1].Delete(tx, key)
			return err
		})
	}
	commit(open[50:])
	checkTree(t, trees[0], model)
	checkMemory(t, c, trees[0])
}
