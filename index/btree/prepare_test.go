package btree

import (
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// TestPrepareRoundTrips: a commit that changes many leaves of another machine waits for them together,
// also if they have been split since the tree was read.
func TestPrepareRoundTrips(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 5000)
	tr := trees[1]
	const changed, apart = 100, 50
	commit := func(value int) txn.Stats {
		t.Helper()
		tx := tr.m.Begin()
		for i := range changed {
			if err := tr.Put(tx, intKey(i*apart), rowPtr(value)); err != nil {
				t.Fatal(err)
			}
		}
		before := tr.m.Stats()
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		return tr.m.Stats().Sub(before)
	}
	commit(10_000) // learns where leaves are
	if s := commit(10_001); s.RoundTrips > 10 || s.RemoteReads < 20 {
		t.Errorf("%d round trips for %d READs", s.RoundTrips, s.RemoteReads)
	}
	insertRange(t, trees[0], 5000, 9000)
	for i := range 1000 { // splits leaves
		must(t, trees[0].m, func(tx *txn.Tx) error { return trees[0].Put(tx, append(intKey(i), 1), rowPtr(i)) })
	}
	commit(10_002)
	must(t, trees[0].m, func(tx *txn.Tx) error {
		for i := range changed {
			if v, ok, err := trees[0].Get(tx, intKey(i*apart)); err != nil || !ok || v != rowPtr(10_002) {
				t.Errorf("key %d: %v %v %v", i*apart, v, ok, err)
			}
		}
		return nil
	})
}
