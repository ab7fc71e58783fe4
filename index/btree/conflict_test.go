package btree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// TestNoFalseConflicts: many open transactions, on all machines, insert into one leaf, which splits
// meanwhile. They commit in a random order.
func TestNoFalseConflicts(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, smallNodes)
	model := map[string]region.Ptr{}
	const open = 64
	var txs []*txn.Tx
	for i := range open {
		tx := c.Machine(i % 3).Begin()
		defer tx.Abort()
		tr := trees[i%3]
		for _, k := range []int{i, 1000 + i} {
			if err := tr.Insert(tx, intKey(k), rowPtr(k)); err != nil {
				t.Fatal(err)
			}
			model[string(intKey(k))] = rowPtr(k)
		}
		if _, ok, err := tr.Get(tx, intKey(5000+i)); ok || err != nil {
			t.Fatal(ok, err)
		}
		txs = append(txs, tx)
	}
	for _, i := range rand.New(rand.NewPCG(4, 4)).Perm(open) {
		if err := txs[i].Commit(ctx); err != nil {
			t.Fatalf("transaction %d of %d: %v", i, open, err)
		}
	}
	checkTree(t, trees[1], model)
	checkMemory(t, c, trees[0])
}

// TestFalseConflictsConcurrently is the same with commits that race.
func TestFalseConflictsConcurrently(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, Config{})
	const clients, rounds = 8, 25
	var next, aborts atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			tr := trees[i%3]
			for range rounds {
				tx := tr.m.Begin()
				k := int(next.Add(1))
				err := tr.Insert(tx, intKey(k), rowPtr(k))
				if err == nil {
					err = tx.Commit(ctx)
				}
				if err != nil {
					aborts.Add(1)
					t.Errorf("client %d: %v", i, err)
				}
				tx.Abort()
			}
		})
	}
	wg.Wait()
	shape, err := trees[0].Inspect(ctx, Visitor{})
	if err != nil || shape.Entries+int(aborts.Load()) != clients*rounds {
		t.Errorf("%d entries, %d aborts: %v", shape.Entries, aborts.Load(), err)
	}
}

func TestSameKeyOneCommits(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	insertRange(t, trees[0], 0, 5)
	for _, deleting := range []bool{false, true} {
		var txs []*txn.Tx
		for i := range 6 {
			tx := c.Machine(i % 2).Begin()
			defer tx.Abort()
			tr := trees[i%2]
			if deleting {
				if was, err := tr.Delete(tx, intKey(2)); !was || err != nil {
					t.Fatal(was, err)
				}
			} else if err := tr.Insert(tx, intKey(77), rowPtr(i)); err != nil {
				t.Fatal(err)
			}
			txs = append(txs, tx)
		}
		for i, tx := range txs {
			err := tx.Commit(ctx)
			if i == 0 && err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				wantConflict(t, err)
			}
		}
	}
	if v, ok, err := trees[1].Lookup(intKey(77)); v != rowPtr(0) || !ok || err != nil {
		t.Errorf("%v %v %v", v, ok, err)
	}
}

// TestQuestions: which changes by another transaction, between a transaction's reads and its commit,
// are conflicts.
func TestQuestions(t *testing.T) {
	c := openFarm(t, 2)
	type action func(tr *Tree, tx *txn.Tx) error
	insert := func(k int) action {
		return func(tr *Tree, tx *txn.Tx) error { return tr.Insert(tx, intKey(k), rowPtr(k)) }
	}
	put := func(k int) action {
		return func(tr *Tree, tx *txn.Tx) error { return tr.Put(tx, intKey(k), rowPtr(k+500)) }
	}
	remove := func(k int) action {
		return func(tr *Tree, tx *txn.Tx) error { _, err := tr.Delete(tx, intKey(k)); return err }
	}
	get := func(k int) action {
		return func(tr *Tree, tx *txn.Tx) error { _, _, err := tr.Get(tx, intKey(k)); return err }
	}
	both := func(as ...action) action {
		return func(tr *Tree, tx *txn.Tx) error {
			for _, a := range as {
				if err := a(tr, tx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	// scan passes n entries of [lo, hi), or all and the end, in a way.
	var way func(cur *Cursor, n int) error
	scan := func(lo, hi, n int, reverse bool) action {
		return func(tr *Tree, tx *txn.Tx) error { return way(tr.Scan(tx, intKey(lo), intKey(hi), reverse), n) }
	}
	ways := map[string]func(cur *Cursor, n int) error{
		"one by one": func(cur *Cursor, n int) error {
			for range n {
				if _, _, ok, err := cur.Next(); err != nil || !ok {
					return err
				}
			}
			return nil
		},
		"skipped":  func(cur *Cursor, n int) error { _, err := cur.Skip(n); return err },
		"together": func(cur *Cursor, n int) error { _, err := cur.NextMany(nil, n); return err },
	}
	all := 1 << 20
	storm := func(tr *Tree, tx *txn.Tx) error { // splits everything, in front and behind
		for i := range 40 {
			if err := tr.Put(tx, append(intKey(15), byte(i)), rowPtr(i)); err != nil {
				return err
			}
		}
		return nil
	}
	// The tree holds 0, 10, 20 ... 990 in leaves of a few entries.
	for _, tc := range []struct {
		name         string
		first        action
		other        action
		mustConflict bool
	}{
		{"get, another key inserted beside", get(20), insert(21), false},
		{"get, its neighbour deleted", get(20), remove(10), false},
		{"get, changed", get(20), put(20), true},
		{"get, deleted", get(20), remove(20), true},
		{"get, deleted and inserted the same", get(20), both(remove(20), insert(20)), false},
		{"absent, inserted", get(25), insert(25), true},
		{"absent, another inserted", get(25), insert(26), false},
		{"get, the leaf split", get(20), storm, false},
		{"insert over blind put", insert(25), put(25), true},
		{"put over put", put(25), put(25), false},
		{"put over insert", put(25), insert(25), false},
		{"scan part, insert behind it", scan(100, 400, 10, false), insert(195), false},
		{"scan part, insert between", scan(100, 400, 10, false), insert(185), true},
		{"scan part, insert before lo", scan(100, 400, 10, false), insert(99), false},
		{"scan part, insert at lo gap", scan(95, 400, 10, false), insert(96), true},
		{"scan part, delete behind it", scan(100, 400, 10, false), remove(200), false},
		{"scan part, delete within", scan(100, 400, 10, false), remove(190), true},
		{"scan part, change within", scan(100, 400, 10, false), put(150), true},
		{"scan all, insert at the end", scan(100, 400, all, false), insert(399), true},
		{"scan all, insert hi", scan(100, 400, all, false), put(400), false},
		{"scan all, insert beyond", scan(100, 400, all, false), insert(401), false},
		{"scan all, storm outside", scan(100, 400, all, false), storm, false},
		{"scan all, storm inside", scan(10, 30, all, false), storm, true},
		{"scan nothing", scan(100, 400, 0, false), insert(101), false},
		{"empty range, insert", scan(101, 109, all, false), insert(105), true},
		{"empty range, insert beside", scan(101, 109, all, false), insert(109), false},
		{"reverse part, insert ahead", scan(100, 400, 10, true), insert(295), false},
		{"reverse part, insert between", scan(100, 400, 10, true), insert(305), true},
		{"reverse part, insert above", scan(100, 400, 10, true), insert(400 + 5), false},
		{"reverse part, insert at hi gap", scan(100, 400, 10, true), insert(395), true},
		{"reverse all, insert at the start", scan(95, 400, all, true), insert(96), true},
		{"reverse all, insert below", scan(95, 400, all, true), insert(94), false},
		{"reverse all, delete within", scan(95, 400, all, true), remove(100), true},
		{"own insert passed, insert beyond it", both(insert(101), scan(100, 400, 2, false)), insert(102), false},
		{"own insert passed, insert before it", both(insert(102), scan(100, 400, 2, false)), insert(101), true},
		{"own delete passed", both(remove(100), scan(100, 400, 1, false)), insert(101), true},
		{"own delete passed, beyond", both(remove(100), scan(100, 400, 1, false)), insert(111), false},
		{"reverse own insert, insert ahead", both(insert(399), scan(100, 400, 1, true)), insert(398), false},
		{"own storm, insert beside", both(storm, get(20)), insert(21), false},
		{"scan all, a row moved to another key", scan(100, 400, all, false), both(remove(150), func(tr *Tree, tx *txn.Tx) error {
			return tr.Put(tx, intKey(151), rowPtr(150))
		}), true},
		{"scan all, all of it deleted", scan(100, 400, all, false), both(remove(100), remove(110)), true},
	} {
		run := func(t *testing.T) {
			trees := createTree(t, c, smallNodes)
			must(t, c.Machine(0), func(tx *txn.Tx) error {
				for k := 0; k < 1000; k += 10 {
					if err := trees[0].Insert(tx, intKey(k), rowPtr(k)); err != nil {
						return err
					}
				}
				return nil
			})
			tx := c.Machine(1).Begin()
			defer tx.Abort()
			if err := tc.first(trees[1], tx); err != nil {
				t.Fatal(err)
			}
			// The transaction must write something, far away: then a conflict shows whether or not
			// read-only transactions are validated.
			if err := trees[1].Put(tx, intKey(5000), rowPtr(1)); err != nil {
				t.Fatal(err)
			}
			must(t, c.Machine(0), func(tx *txn.Tx) error { return tc.other(trees[0], tx) })
			err := tx.Commit(ctx)
			if tc.mustConflict {
				wantConflict(t, err)
			} else if err != nil {
				t.Fatalf("false conflict: %v", err)
			}
			if err := trees[0].Check(ctx, nil); err != nil {
				t.Error(err)
			}
		}
		for name := range ways {
			way = ways[name]
			t.Run(tc.name+"/"+name, run)
		}
	}
}

// TestQuestionsAskedTwice: if a question was asked again and had the same answer, the sources of the
// second answer count from then on.
func TestQuestionsAskedTwice(t *testing.T) {
	c := openFarm(t, 2)
	reads := map[string]func(tr *Tree, tx *txn.Tx) error{
		"absent": func(tr *Tree, tx *txn.Tx) error { _, _, err := tr.Get(tx, intKey(105)); return err },
		"scan": func(tr *Tree, tx *txn.Tx) error {
			_, err := scanAll(tr.Scan(tx, intKey(101), intKey(109), false))
			return err
		},
		"reverse": func(tr *Tree, tx *txn.Tx) error {
			_, err := scanAll(tr.Scan(tx, intKey(101), intKey(109), true))
			return err
		},
	}
	for name, read := range reads {
		for _, phantom := range []bool{false, true} {
			trees := createTree(t, c, smallNodes)
			insertRange(t, trees[0], 100, 101)
			insertRange(t, trees[0], 110, 111)
			tx := c.Machine(1).Begin()
			defer tx.Abort()
			if err := read(trees[1], tx); err != nil {
				t.Fatal(err)
			}
			if err := trees[1].Put(tx, intKey(5000), rowPtr(1)); err != nil {
				t.Fatal(err)
			}
			for k := 110; k < 140; k++ { // splits the leaf between two rounds
				must(t, c.Machine(0), func(tx *txn.Tx) error { return trees[0].Put(tx, intKey(k), rowPtr(k)) })
				if err := tx.Validate(); err != nil {
					t.Fatalf("%s: validate: %v", name, err)
				}
			}
			if !phantom {
				if err := tx.Commit(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			must(t, c.Machine(0), func(tx *txn.Tx) error { return trees[0].Put(tx, intKey(105), rowPtr(1)) })
			if err := tx.Commit(ctx); !errors.Is(err, outcome.ErrConflict) {
				t.Errorf("%s: a phantom after validation: %v", name, err)
			}
		}
	}
}

// TestUniqueOwnership: goroutines on three machines insert and delete keys from a small space. A key
// belongs to the goroutine that inserted it, and only that one deletes it: no insert of a key that
// belongs to somebody may succeed.
func TestUniqueOwnership(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, smallNodes)
	const keys, clients, rounds = 300, 6, 150
	var owner [keys]atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			tr, r := trees[i%3], rand.New(rand.NewPCG(uint64(i), 5))
			var mine []int
			for range rounds {
				if len(mine) > 20 || len(mine) > 0 && r.IntN(3) == 0 {
					k := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					if !owner[k].CompareAndSwap(int64(i+1), 0) {
						t.Errorf("key %d: owned by %d, not %d", k, owner[k].Load(), i+1)
					}
					deleteOwned(t, tr, k)
					continue
				}
				k := r.IntN(keys)
				err := tr.m.Run(ctx, func(tx *txn.Tx) error { return tr.Insert(tx, intKey(k), rowPtr(k)) })
				switch {
				case errors.Is(err, ErrExists):
				case err != nil:
					t.Errorf("insert %d: %v", k, err)
				case !owner[k].CompareAndSwap(0, int64(i+1)):
					t.Errorf("key %d: inserted by %d and %d", k, owner[k].Load(), i+1)
				default:
					mine = append(mine, k)
				}
			}
		})
	}
	wg.Wait()
	model := map[string]region.Ptr{}
	for k := range keys {
		if owner[k].Load() != 0 {
			model[string(intKey(k))] = rowPtr(k)
		}
	}
	checkTree(t, trees[2], model)
	checkMemory(t, c, trees[0])
}

func deleteOwned(t *testing.T, tr *Tree, k int) {
	err := tr.m.Run(ctx, func(tx *txn.Tx) error {
		was, err := tr.Delete(tx, intKey(k))
		if err == nil && !was {
			return fmt.Errorf("it was not there")
		}
		return err
	})
	if err != nil {
		t.Errorf("delete %d: %v", k, err)
	}
}

// TestScanWhileOthersChange: a scan in a transaction that commits has seen one state. Here that means
// both keys of each pair or neither.
func TestScanWhileOthersChange(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, smallNodes)
	const space = 200
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			tr, r := trees[i], rand.New(rand.NewPCG(uint64(i), 6))
			for {
				select {
				case <-stop:
					return
				default:
				}
				k := r.IntN(space/2)*2 + i
				err := tr.m.Run(ctx, func(tx *txn.Tx) error { return toggle(tr, tx, k, k+space) })
				if err != nil {
					t.Errorf("toggle: %v", err)
				}
			}
		})
	}
	for round := range 60 {
		var got []pair
		err := trees[2].m.Run(ctx, func(tx *txn.Tx) (err error) {
			got, err = scanAll(trees[2].Scan(tx, nil, nil, round%2 == 1))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, p := range got {
			seen[p.key]++
		}
		for k := range space {
			if a, b := seen[string(intKey(k))], seen[string(intKey(k+space))]; a != b || a > 1 {
				t.Fatalf("round %d: key %d seen %d times, its twin %d", round, k, a, b)
			}
		}
	}
	close(stop)
	wg.Wait()
	checkMemory(t, c, trees[0])
}

// toggle inserts both keys or deletes both.
func toggle(tr *Tree, tx *txn.Tx, keys ...int) error {
	for _, k := range keys {
		was, err := tr.Delete(tx, intKey(k))
		if err == nil && !was {
			err = tr.Insert(tx, intKey(k), rowPtr(k))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestNoWriteSkew: two transactions on two machines run at the same time. Each inserts a key only if
// the other's key is absent. Both commits lock the leaf that the other one's answer came from, so one
// of them must notice the other.
func TestNoWriteSkew(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	insertRange(t, trees[0], 0, 200)
	for round := range 150 {
		keys := [2][]byte{append(intKey(10), byte(round)), append(intKey(190), byte(round))}
		var inserted [2]bool
		var wg sync.WaitGroup
		for i, tr := range trees {
			wg.Go(func() {
				tx := tr.m.Begin()
				defer tx.Abort()
				if _, found, err := tr.Get(tx, keys[1-i]); err != nil || found {
					return
				}
				if err := tr.Insert(tx, keys[i], rowPtr(i)); err != nil {
					t.Error(err)
				}
				err := tx.Commit(ctx)
				if err != nil && !errors.Is(err, outcome.ErrConflict) {
					t.Error(err)
				}
				inserted[i] = err == nil
			})
		}
		wg.Wait()
		if inserted[0] == inserted[1] {
			t.Fatalf("round %d: inserted %v", round, inserted)
		}
	}
}
