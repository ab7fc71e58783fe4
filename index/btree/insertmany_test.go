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

// someEntries returns entries for numbers, in ascending order.
func someEntries(numbers ...int) (entries []Entry) {
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		entries = append(entries, Entry{intKey(n), rowPtr(n)})
	}
	return entries
}

func mustCommit(t *testing.T, tx *txn.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestManyAgreesWithOneByOne inserts and puts random entries together into one tree, and one by one into another, beside other
// changes of the transaction, some of which it takes back.
func TestManyAgreesWithOneByOne(t *testing.T) {
	c := openFarm(t, 2)
	many, single := createTree(t, c, smallNodes), createTree(t, c, smallNodes)
	r := rand.New(rand.NewPCG(5, 5))
	for round := range 150 {
		on := round % 2
		tx := many[on].m.Begin()
		for range 1 + r.IntN(4) {
			var numbers []int
			for range r.IntN(150) {
				numbers = append(numbers, r.IntN(5000))
			}
			entries, isNew := someEntries(numbers...), r.IntN(2) == 0
			mark, takesBack := tx.Mark(), r.IntN(4) == 0
			var err, want error
			if isNew {
				err = many[on].InsertMany(tx, entries)
				for _, e := range entries {
					if found, errHas := single[on].Has(tx, e.Key); errHas != nil {
						t.Fatal(errHas)
					} else if found {
						want = ErrExists
					}
				}
			} else {
				err = many[on].PutMany(tx, entries)
			}
			if !errors.Is(err, want) {
				t.Fatalf("round %d: %v, want %v", round, err, want)
			}
			if want == nil {
				for _, e := range entries {
					if err := single[on].Put(tx, e.Key, e.Value); err != nil {
						t.Fatal(err)
					}
				}
			}
			if takesBack {
				tx.Rollback(mark)
			}
			for range 20 { // so that later entries have keys that the transaction has changed
				key := intKey(r.IntN(5000))
				if _, err := many[on].Delete(tx, key); err != nil {
					t.Fatal(err)
				}
				if err := single[on].Drop(tx, key); err != nil { // with or without a value
					t.Fatal(err)
				}
			}
		}
		sameEntries(t, tx, many[on], single[on])
		mustCommit(t, tx)
	}
}

// sameEntries fails unless two trees have the same entries, as a transaction sees them.
func sameEntries(t *testing.T, tx *txn.Tx, a, b *Tree) {
	t.Helper()
	x, y := a.Scan(tx, nil, nil, false), b.Scan(tx, nil, nil, false)
	for {
		key, v, ok, err := x.Next()
		key2, v2, ok2, err2 := y.Next()
		if err != nil || err2 != nil || ok != ok2 || v != v2 || !slices.Equal(key, key2) {
			t.Fatalf("%x %v %v %v, and %x %v %v %v", key, v, ok, err, key2, v2, ok2, err2)
		}
		if !ok {
			return
		}
	}
}

// TestInsertManyIsValidated: a transaction that has inserted keys together depends on each of them, and on no other key, wherever
// their leaves have gone since.
func TestInsertManyIsValidated(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	insertRange(t, trees[0], 0, 1000)
	for _, x := range []struct {
		others    []int
		conflicts bool
	}{{[]int{1003}, true}, {[]int{1001, 1002, 1004}, false}, {nil, false}} {
		tx := trees[1].m.Begin()
		if err := trees[1].InsertMany(tx, someEntries(1000, 1003, 1500, 5000)); err != nil {
			t.Fatal(err)
		}
		other := trees[0].m.Begin()
		if err := trees[0].PutMany(other, someEntries(x.others...)); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, other)
		if !x.conflicts {
			insertRange(t, trees[0], 2000, 2300) // leaves are split
		}
		err := tx.Validate()
		if errors.Is(err, outcome.ErrConflict) != x.conflicts || (err != nil) != x.conflicts {
			t.Errorf("beside %v: %v", x.others, err)
		}
		tx.Abort()
		undo := trees[0].m.Begin()
		for n := range 3000 {
			if n >= 1000 {
				if err := trees[0].Drop(undo, intKey(n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		mustCommit(t, undo)
	}
}

// TestManyFail: what one by one fails, fails together, and nothing has been added.
func TestManyFail(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	insertRange(t, tr, 0, 10)
	tx := tr.m.Begin()
	defer tx.Abort()
	long := []Entry{{intKey(20), rowPtr(1)}, {make([]byte, MaxKeyBytes+1), region.Ptr{}}}
	for name, x := range map[string]struct {
		err, want error
	}{
		"a long key":  {tr.InsertMany(tx, long), ErrKeyTooLong},
		"a long put":  {tr.PutMany(tx, long), ErrKeyTooLong},
		"a long drop": {tr.Drop(tx, long[1].Key), ErrKeyTooLong},
		"an old key":  {tr.InsertMany(tx, someEntries(20, 9)), ErrExists},
		"nothing":     {tr.InsertMany(tx, nil), nil},
	} {
		if !errors.Is(x.err, x.want) {
			t.Errorf("%s: %v", name, x.err)
		}
	}
	if found, err := tr.Has(tx, intKey(20)); found || err != nil {
		t.Errorf("a key of a call that failed: %v, %v", found, err)
	}
}
