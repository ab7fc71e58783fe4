package btree

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// TestOnly: a scan conflicts with changes of the entries that matter, here those with even rows, and
// with no others, also if these make leaves split or empty.
func TestOnly(t *testing.T) {
	const keys, rounds = 60, 300
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	r := rand.New(rand.NewPCG(1, 2))
	conflicts := 0
	for round := range rounds {
		lo, hi := intKey(r.IntN(keys)), intKey(r.IntN(keys+1))
		tx := trees[0].m.Begin()
		before := evenRows(t, trees[0].Scan(tx, lo, hi, round%2 == 0).Only(isEven))
		must(t, trees[1].m, func(tx *txn.Tx) error { return changeSome(trees[1], tx, r, keys) })
		err := tx.Validate()
		tx.Abort()
		if err != nil && !errors.Is(err, outcome.ErrConflict) {
			t.Fatal(err)
		}
		var after []rowAt
		must(t, trees[0].m, func(tx *txn.Tx) error {
			after = evenRows(t, trees[0].Scan(tx, lo, hi, round%2 == 0))
			return nil
		})
		if same := slices.Equal(before, after); same != (err == nil) {
			t.Fatalf("round %d: %v; before %v, after %v", round, err, before, after)
		}
		if err != nil {
			conflicts++
		}
	}
	if conflicts < rounds/10 || conflicts > rounds*9/10 {
		t.Errorf("%d conflicts in %d rounds", conflicts, rounds)
	}
}

// TestOnlyFails: if it cannot be said whether an entry matters, the transaction fails.
func TestOnlyFails(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	insertRange(t, tr, 1, 3)
	failure := errors.New("unknown")
	for _, unknown := range []int{1, 5} { // an entry that was read, and a new one
		tx := tr.m.Begin()
		evenRows(t, tr.Scan(tx, nil, nil, false).Only(func(_ *txn.Fresh, p region.Ptr) (bool, error) {
			if p == rowPtr(unknown) {
				return false, failure
			}
			return true, nil
		}))
		must(t, tr.m, func(other *txn.Tx) error { return tr.Put(other, intKey(5), rowPtr(5)) })
		if err := tx.Validate(); !errors.Is(err, failure) {
			t.Errorf("%d: %v", unknown, err)
		}
		tx.Abort()
		must(t, tr.m, func(other *txn.Tx) error { _, err := tr.Delete(other, intKey(5)); return err })
	}
}

type rowAt struct {
	key string
	row region.Ptr
}

func isEven(_ *txn.Fresh, p region.Ptr) (bool, error) { return p.Addr.Offset()>>6%2 == 1, nil }

// evenRows reads a scan, and returns its entries with even rows.
func evenRows(t *testing.T, c *Cursor) (rows []rowAt) {
	t.Helper()
	for key, p := range c.All() {
		if even, _ := isEven(nil, p); even {
			rows = append(rows, rowAt{string(key), p})
		}
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// changeSome changes some entries at random, half the time only entries that do not matter.
func changeSome(tr *Tree, tx *txn.Tx, r *rand.Rand, keys int) error {
	oddOnly := r.IntN(2) == 0
	for range 1 + r.IntN(20) {
		key, row := intKey(r.IntN(keys)), rowPtr(r.IntN(1000))
		old, found, err := tr.Get(tx, key)
		if err != nil {
			return err
		}
		if oddOnly {
			if even, _ := isEven(nil, old); found && even {
				continue
			}
			row = rowPtr(2*r.IntN(500) + 1)
		}
		if r.IntN(2) == 0 {
			_, err = tr.Delete(tx, key)
		} else {
			err = tr.Put(tx, key, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
