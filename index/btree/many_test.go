package btree

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// tensTree returns a tree with the keys 0, 10, 20 to 90.
func tensTree(t *testing.T) *Tree {
	t.Helper()
	tr := createTree(t, openFarm(t, 1), Config{})[0]
	must(t, tr.m, func(tx *txn.Tx) error {
		for k := 0; k < 100; k += 10 {
			if err := tr.Insert(tx, intKey(k), rowPtr(k)); err != nil {
				return err
			}
		}
		return nil
	})
	return tr
}

// skip passes n entries.
func skip(t *testing.T, c *Cursor, n int) {
	t.Helper()
	if got, err := c.Skip(n); got != n || err != nil {
		t.Fatalf("%d of %d entries skipped: %v", got, n, err)
	}
}

// TestSkipBehindOwnChange: the entries that a cursor skips together behind an own change are part of what the
// transaction has read.
func TestSkipBehindOwnChange(t *testing.T) {
	tr := tensTree(t)
	for _, skipped := range []bool{true, false} {
		tx := tr.m.Begin()
		defer tx.Abort()
		if err := tr.Insert(tx, intKey(15), rowPtr(15)); err != nil {
			t.Fatal(err)
		}
		c := tr.Scan(tx, nil, nil, false)
		skip(t, c, 3) // 0, 10 and the own 15
		if skipped {
			skip(t, c, 3)
		}
		must(t, tr.m, func(other *txn.Tx) error { return tr.Put(other, intKey(35), rowPtr(35)) })
		if err := tx.Commit(ctx); skipped != errors.Is(err, outcome.ErrConflict) || !skipped && err != nil {
			t.Errorf("skipped %v: %v", skipped, err)
		}
		must(t, tr.m, func(other *txn.Tx) error { _, err := tr.Delete(other, intKey(35)); return err })
	}
}

// TestChangeBehindSkipped: own changes behind a cursor do not count, as after Next.
func TestChangeBehindSkipped(t *testing.T) {
	tr := tensTree(t)
	for _, reverse := range []bool{false, true} {
		tx := tr.m.Begin()
		defer tx.Abort()
		c := tr.Scan(tx, nil, nil, reverse)
		skip(t, c, 5)
		behind, want := 25, []region.Ptr{rowPtr(50), rowPtr(60)}
		if reverse {
			behind, want = 75, []region.Ptr{rowPtr(40), rowPtr(30)}
		}
		if err := tr.Insert(tx, intKey(behind), rowPtr(behind)); err != nil {
			t.Fatal(err)
		}
		got, err := c.NextMany(nil, 2)
		if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("reverse %v: %v %v, want %v", reverse, got, err, want)
		}
	}
}

// TestSkipAfterTransaction: a cursor passes nothing after its transaction has ended.
func TestSkipAfterTransaction(t *testing.T) {
	tr := tensTree(t)
	tx := tr.m.Begin()
	c := tr.Scan(tx, nil, nil, false)
	skip(t, c, 2)
	tx.Abort()
	if n, err := c.Skip(2); n != 0 || !errors.Is(err, txn.ErrDone) {
		t.Errorf("%d entries skipped: %v", n, err)
	}
	if got, err := c.NextMany(nil, 2); len(got) != 0 || !errors.Is(err, txn.ErrDone) {
		t.Errorf("%v returned: %v", got, err)
	}
}
