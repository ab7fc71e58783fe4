package btree

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// keyMaker draws keys of one kind; the same key comes up again often.
type keyMaker func(r *rand.Rand) []byte

var keyMakers = map[string]keyMaker{
	"ints":   func(r *rand.Rand) []byte { return intKey(r.IntN(600)) },
	"shared": func(r *rand.Rand) []byte { return []byte(randomKey(r, "warehouse/17/district/")) },
	"wild":   func(r *rand.Rand) []byte { return []byte(randomKey(r, "")) },
	"long": func(r *rand.Rand) []byte {
		k := bytes.Repeat([]byte{byte('a' + r.IntN(3))}, []int{1, 40, 900, MaxKeyBytes - 2}[r.IntN(4)])
		return append(k, byte(r.IntN(9)), byte(r.IntN(9)))
	},
}

// subject is a tree under differential test. committed is what other transactions see; seen is what
// the running transaction sees.
type subject struct {
	trees           []*Tree
	key             keyMaker
	committed, seen map[string]region.Ptr
}

// TestDifferential runs random transactions with savepoints over several trees
// on several machines, and compares every answer with a sorted map.
func TestDifferential(t *testing.T) {
	c := openFarm(t, 3)
	var all []*Tree
	for _, seed := range []uint64{1, 2, 3} {
		r := rand.New(rand.NewPCG(seed, 3))
		var subjects []*subject
		for _, name := range slices.Sorted(maps.Keys(keyMakers)) {
			cfg := smallNodes
			if r.IntN(3) == 0 {
				cfg = Config{}
			}
			subjects = append(subjects, &subject{trees: createTree(t, c, cfg), key: keyMakers[name], committed: map[string]region.Ptr{}})
		}
		for _, s := range subjects {
			all = append(all, s.trees[0])
		}
		for range 120 {
			runRandomTx(t, r, c.Machine(r.IntN(3)), subjects)
		}
		for _, s := range subjects {
			checkTree(t, s.trees[0], s.committed)
			for k, v := range s.committed {
				if got, ok, err := s.trees[r.IntN(3)].Lookup([]byte(k)); err != nil || !ok || got != v {
					t.Fatalf("lookup %x: %v %v %v, want %v", k, got, ok, err, v)
				}
			}
			if r.IntN(4) > 0 {
				emptyAgain(t, r, s)
			}
		}
	}
	checkMemory(t, c, all...)
}

// runRandomTx runs one transaction of random operations on m, and commits or
// aborts it.
func runRandomTx(t *testing.T, r *rand.Rand, m *txn.Machine, subjects []*subject) {
	t.Helper()
	tx := m.Begin()
	defer tx.Abort()
	for _, s := range subjects {
		s.seen = maps.Clone(s.committed)
	}
	inserting := r.IntN(3) > 0 // grow or shrink
	for range 1 + r.IntN(60) {
		s := subjects[r.IntN(len(subjects))]
		tr := s.trees[m.ID()]
		if r.IntN(12) > 0 {
			randomOp(t, r, tx, tr, s, inserting)
			continue
		}
		saved := maps.Clone(s.seen)
		mark := tx.Mark()
		for range r.IntN(12) {
			randomOp(t, r, tx, tr, s, inserting)
		}
		if r.IntN(2) == 0 {
			tx.Rollback(mark)
			s.seen = saved
		}
	}
	if r.IntN(5) == 0 {
		return
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		s.committed = s.seen
	}
}

func randomOp(t *testing.T, r *rand.Rand, tx *txn.Tx, tr *Tree, s *subject, inserting bool) {
	t.Helper()
	key, v := s.key(r), rowPtr(r.IntN(1000))
	old, exists := s.seen[string(key)]
	op := r.IntN(10)
	if !inserting && op < 4 {
		op = 5
	}
	switch op {
	case 0, 1, 2, 3:
		err := tr.Insert(tx, key, v)
		if exists != errors.Is(err, ErrExists) || !exists && err != nil {
			t.Fatalf("insert %x, there already: %v: %v", key, exists, err)
		}
		if !exists {
			s.seen[string(key)] = v
		}
	case 4:
		if err := tr.Put(tx, key, v); err != nil {
			t.Fatal(err)
		}
		s.seen[string(key)] = v
	case 5, 6:
		was, err := tr.Delete(tx, key)
		if err != nil || was != exists {
			t.Fatalf("delete %x, there: %v: %v %v", key, exists, was, err)
		}
		delete(s.seen, string(key))
	case 7:
		randomScan(t, r, tx, tr, s)
	default:
		got, ok, err := tr.Get(tx, key)
		if err != nil || ok != exists || ok && got != old {
			t.Fatalf("get %x: %v %v %v, want %v %v", key, got, ok, err, old, exists)
		}
	}
}

func randomScan(t *testing.T, r *rand.Rand, tx *txn.Tx, tr *Tree, s *subject) {
	t.Helper()
	var lo, hi []byte
	if r.IntN(3) > 0 {
		lo = s.key(r)
	}
	if r.IntN(3) > 0 {
		hi = s.key(r)
	}
	reverse := r.IntN(2) == 0
	want := within(pairs(s.seen), lo, hi, reverse)
	cur := tr.Scan(tx, lo, hi, reverse)
	if r.IntN(2) == 0 {
		cur.ReadAhead(r.IntN(2 * rowsAhead))
	}
	for left := r.IntN(len(want) + 1); left > 0; { // leave some unread
		passed := randomStep(t, r, cur, want[:left])
		want, left = want[passed:], left-passed
	}
	if r.IntN(2) == 0 {
		rest, err := scanAll(cur)
		if err != nil || !slices.Equal(rest, want) {
			t.Fatalf("scan [%x,%x) reverse %v: %v: %s", lo, hi, reverse, err, difference(rest, want))
		}
	}
}

// randomStep passes some of the entries that a cursor has ahead of it, and returns how many.
func randomStep(t *testing.T, r *rand.Rand, cur *Cursor, want []pair) int {
	t.Helper()
	n := 1 + r.IntN(len(want))
	switch r.IntN(3) {
	case 0:
		if got, err := cur.Skip(n); got != n || err != nil {
			t.Fatalf("skip %d: %d %v", n, got, err)
		}
		return n
	case 1:
		got, err := cur.NextMany(nil, n)
		if err != nil || len(got) != n {
			t.Fatalf("next %d: %d %v", n, len(got), err)
		}
		for i, v := range got {
			if v != want[i].val {
				t.Fatalf("entry %d of %d is %v, want %v", i, n, v, want[i])
			}
		}
		return n
	}
	k, v, ok, err := cur.Next()
	if err != nil || !ok || string(k) != want[0].key || v != want[0].val {
		t.Fatalf("next: %x %v %v %v, want %v", k, v, ok, err, want[0])
	}
	return 1
}

// emptyAgain deletes everything in random order, and checks that the tree frees nodes meanwhile.
func emptyAgain(t *testing.T, r *rand.Rand, s *subject) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(s.committed))
	if r.IntN(2) == 0 {
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	for batch := range slices.Chunk(keys, 1+r.IntN(20)) {
		tr := s.trees[r.IntN(len(s.trees))]
		must(t, tr.m, func(tx *txn.Tx) error {
			for _, k := range batch {
				if was, err := tr.Delete(tx, []byte(k)); err != nil || !was {
					t.Fatalf("delete %x: %v %v", k, was, err)
				}
			}
			return nil
		})
	}
	shape := checkTree(t, s.trees[0], nil)
	if shape.Leaves != 1 || shape.Inner != 0 {
		t.Errorf("an empty tree has %d leaves and %d inner nodes", shape.Leaves, shape.Inner)
	}
}

func TestAscendingInsertFillsLeaves(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), Config{})[0]
	insertRange(t, tr, 0, 5000)
	for i := 5000; i < 5200; i++ { // one a transaction, like AUTO_INCREMENT
		must(t, tr.m, func(tx *txn.Tx) error { return tr.Insert(tx, intKey(i), rowPtr(i)) })
	}
	shape, err := tr.Inspect(ctx, Visitor{})
	if err != nil {
		t.Fatal(err)
	}
	// While a leaf fills, its high fence is plus infinity, and its keys have no prefix in common.
	// After a split 30 of 32 bytes of each entry are left there.
	if shape.Entries != 5200 || shape.LeafUsed*10 < shape.LeafBytes*7 {
		t.Errorf("%d entries, leaves hold %d of %d bytes", shape.Entries, shape.LeafUsed, shape.LeafBytes)
	}
}

func TestLongKeys(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), Config{})[0]
	model := map[string]region.Ptr{}
	for i := range 60 {
		k := append(bytes.Repeat([]byte{'x'}, MaxKeyBytes-1), byte(i*37))
		must(t, tr.m, func(tx *txn.Tx) error { return tr.Insert(tx, k, rowPtr(i)) })
		model[string(k)] = rowPtr(i)
		small := []byte{byte(i * 11), 'x'}
		must(t, tr.m, func(tx *txn.Tx) error { return tr.Put(tx, small, rowPtr(i)) })
		model[string(small)] = rowPtr(i)
	}
	checkTree(t, tr, model)
	tooLong := make([]byte, MaxKeyBytes+1)
	tx := tr.m.Begin()
	defer tx.Abort()
	for name, err := range map[string]error{
		"insert": tr.Insert(tx, tooLong, rowPtr(0)),
		"put":    tr.Put(tx, tooLong, rowPtr(0)),
		"get":    func() error { _, _, err := tr.Get(tx, tooLong); return err }(),
		"delete": func() error { _, err := tr.Delete(tx, tooLong); return err }(),
		"lookup": func() error { _, _, err := tr.Lookup(tooLong); return err }(),
	} {
		if !errors.Is(err, ErrKeyTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A bound may be longer than any key.
	tx = tr.m.Begin()
	defer tx.Abort()
	bound := bytes.Repeat([]byte{'x'}, 2*MaxKeyBytes)
	for _, reverse := range []bool{false, true} {
		got, err := scanAll(tr.Scan(tx, nil, bound, reverse))
		if want := within(pairs(model), nil, bound, reverse); err != nil || !slices.Equal(got, want) {
			t.Errorf("scan below a long bound: %v: %s", err, difference(got, want))
		}
		got, err = scanAll(tr.Scan(tx, bound, nil, reverse))
		if want := within(pairs(model), bound, nil, reverse); err != nil || !slices.Equal(got, want) {
			t.Errorf("scan above a long bound: %v: %s", err, difference(got, want))
		}
	}
}

func TestCreateAndUseInOneTransaction(t *testing.T) {
	c := openFarm(t, 2)
	m := c.Machine(0)
	var anchor region.Ptr
	model := map[string]region.Ptr{}
	must(t, m, func(tx *txn.Tx) error {
		var err error
		if anchor, err = Create(tx, smallNodes, 0); err != nil {
			return err
		}
		tr := Open(m, anchor)
		for i := range 500 {
			if err := tr.Insert(tx, intKey(i), rowPtr(i)); err != nil {
				return err
			}
			model[string(intKey(i))] = rowPtr(i)
		}
		if err := tr.Insert(tx, intKey(7), rowPtr(0)); !errors.Is(err, ErrExists) {
			t.Errorf("insert of a key of our own: %v", err)
		}
		if was, err := tr.Delete(tx, intKey(7)); !was || err != nil {
			t.Errorf("delete of our own: %v %v", was, err)
		}
		delete(model, string(intKey(7)))
		got, err := scanAll(tr.Scan(tx, nil, nil, true))
		if want := within(pairs(model), nil, nil, true); err != nil || !slices.Equal(got, want) {
			t.Errorf("scan of a tree just created: %v: %s", err, difference(got, want))
		}
		return nil
	})
	if shape := checkTree(t, Open(c.Machine(1), anchor), model); shape.Levels < 3 {
		t.Errorf("%d levels", shape.Levels)
	}
}

func TestCreateRolledBack(t *testing.T) {
	c := openFarm(t, 1)
	m := c.Machine(0)
	var gone, kept region.Ptr
	must(t, m, func(tx *txn.Tx) (err error) {
		mark := tx.Mark()
		if gone, err = Create(tx, Config{}, 0); err != nil {
			return err
		}
		if err := Open(m, gone).Insert(tx, intKey(1), rowPtr(1)); err != nil {
			return err
		}
		tx.Rollback(mark)
		kept, err = Create(tx, Config{}, 0)
		return err
	})
	checkTree(t, Open(m, kept), nil)
	checkMemory(t, c, Open(m, kept))
	if gone != kept { // the slot may serve the second one
		if _, _, err := Open(m, gone).Lookup(intKey(1)); !errors.Is(err, ErrDestroyed) {
			t.Errorf("lookup in a tree that was rolled back: %v", err)
		}
	}
}

// TestScanSeesOwnOperationsAhead checks which operations of its transaction a cursor shows if they
// are made while it is open.
func TestScanSeesOwnOperationsAhead(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), smallNodes)[0]
	for i := 0; i < 100; i += 10 {
		insertRange(t, tr, i, i+1)
	}
	for _, reverse := range []bool{false, true} {
		tx := tr.m.Begin()
		cur := tr.Scan(tx, nil, nil, reverse)
		next := func(want int) {
			t.Helper()
			k, _, ok, err := cur.Next()
			if err != nil || !ok || !bytes.Equal(k, intKey(want)) {
				t.Fatalf("reverse %v: next is %x %v %v, want %d", reverse, k, ok, err, want)
			}
		}
		dir := func(i int) int {
			if reverse {
				return 90 - i
			}
			return i
		}
		next(dir(0))
		next(dir(10))
		for _, i := range []int{5, 15, 25} { // behind, ahead, ahead
			if err := tr.Insert(tx, intKey(dir(i)), rowPtr(i)); err != nil {
				t.Fatal(err)
			}
		}
		next(dir(15))
		mark := tx.Mark()
		if err := tr.Put(tx, intKey(dir(22)), rowPtr(22)); err != nil {
			t.Fatal(err)
		}
		tx.Rollback(mark)
		for _, i := range []int{20, 30} {
			if was, err := tr.Delete(tx, intKey(dir(i))); !was || err != nil {
				t.Fatal(was, err)
			}
		}
		next(dir(25))
		next(dir(40))
		if rest, err := scanAll(cur); err != nil || len(rest) != 5 {
			t.Fatalf("rest: %v %v", rest, err)
		}
		tx.Abort()
		if _, _, ok, err := cur.Next(); ok || err != nil {
			t.Errorf("a finished cursor goes on: %v %v", ok, err)
		}
	}
}

func TestCursorAfterTransaction(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), smallNodes)[0]
	insertRange(t, tr, 0, 10)
	tx := tr.m.Begin()
	cur := tr.Scan(tx, nil, nil, false)
	if _, _, ok, err := cur.Next(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	tx.Abort()
	if _, _, ok, err := cur.Next(); ok || !errors.Is(err, txn.ErrDone) {
		t.Errorf("cursor of an ended transaction: %v %v", ok, err)
	}
}
