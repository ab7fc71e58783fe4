package btree

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// makeRows adds rows with keys from lo to hi-1. Machine at makes them and is their primary then. Each
// row holds the lowest byte of its number.
func makeRows(t testing.TB, at *txn.Machine, tr *Tree, lo, hi int) {
	t.Helper()
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(hi - lo) {
		must(t, at, func(tx *txn.Tx) error {
			p, b, err := tx.Alloc(200, 0)
			if err != nil {
				return err
			}
			b[0] = byte(lo + i)
			return tr.Insert(tx, intKey(lo+i), p)
		})
	}
}

// rowsOf reads the rows of a scan.
func rowsOf(tx *txn.Tx, c *Cursor) (rows []byte, err error) {
	for {
		_, p, ok, err := c.Next()
		if err != nil || !ok {
			return rows, err
		}
		b, err := tx.Read(p)
		if err != nil {
			return rows, err
		}
		rows = append(rows, b[0])
	}
}

// A range of 100 rows of other machines takes at most four waits, validation included: leaves and
// rows are read together if the caller knows that it will read all rows.
func TestRangeRoundTrips(t *testing.T) {
	c := openFarm(t, 3)
	trees := createTree(t, c, Config{})
	spread := createTree(t, c, Config{})
	makeRows(t, c.Machine(0), trees[0], 0, 1000)
	makeRows(t, c.Machine(1), spread[1], 0, 1000) // leaves at machine 0
	for _, test := range []struct {
		name    string
		tr      *Tree
		ahead   int
		reverse bool
		most    uint64
	}{
		{"all", trees[1], 100, false, 3}, {"all, in reverse", trees[1], 100, true, 3},
		{"some", trees[1], 8, false, 4}, {"some, in reverse", trees[1], 8, true, 4},
		{"rows elsewhere", spread[2], 100, false, 4}, {"some, rows elsewhere", spread[2], 8, true, 5},
		{"leaves here", spread[0], 100, false, 2}, {"some, leaves here", spread[0], 8, false, 3},
		{"rows here", spread[1], 100, false, 2},
		{"all here", trees[0], 100, false, 0},
		{"one by one", trees[1], 0, false, 110},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := test.tr.m
			for round := range 10 { // the first finds out where leaves are
				lo := 50 + 81*round
				before := m.Stats()
				tx := m.Begin()
				cursor := test.tr.Scan(tx, intKey(lo), intKey(lo+100), test.reverse)
				if test.ahead > 0 {
					cursor.ReadAhead(test.ahead)
				}
				rows, err := rowsOf(tx, cursor)
				if err == nil {
					err = tx.Commit(ctx)
				}
				if err != nil || len(rows) != 100 {
					t.Fatal(len(rows), err)
				}
				if test.reverse {
					slices.Reverse(rows)
				}
				for i, b := range rows {
					if b != byte(lo+i) {
						t.Fatalf("row %d is %d", lo+i, b)
					}
				}
				if s := m.Stats().Sub(before); round > 0 && s.RoundTrips > test.most || test.ahead == 0 && s.RoundTrips < 100 {
					t.Errorf("range %d: %d round trips for %d READs, want at most %d", round, s.RoundTrips, s.RemoteReads, test.most)
				}
			}
		})
	}
}

// A long scan waits once for about every 128 rows, and a scan that is given up early has read little.
func TestLongScanRoundTrips(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, Config{})
	const n = 3000
	makeRows(t, c.Machine(0), trees[0], 0, n)
	tr := trees[1]
	scan := func(hi []byte, reverse bool, take int) txn.Stats {
		before := tr.m.Stats()
		tx := tr.m.Begin()
		defer tx.Abort()
		cursor := tr.Scan(tx, nil, hi, reverse).ReadAhead(8)
		for i := 0; i < take; i++ {
			_, p, ok, err := cursor.Next()
			if err == nil && ok {
				_, err = tx.Read(p)
			}
			if err != nil || !ok {
				t.Fatal(i, ok, err)
			}
		}
		return tr.m.Stats().Sub(before)
	}
	scan(nil, false, n)
	for _, reverse := range []bool{false, true} {
		if s := scan(nil, reverse, n); s.RoundTrips > n/100+6 {
			t.Errorf("reverse %v: %d round trips for %d rows", reverse, s.RoundTrips, n)
		}
		if s := scan(nil, reverse, 1); s.RemoteReads > 1+8 || s.RoundTrips > 2 {
			t.Errorf("reverse %v: %d READs, %d round trips for one row", reverse, s.RemoteReads, s.RoundTrips)
		}
		if s := scan(intKey(n), reverse, 1); s.RemoteReads > 1+8+leavesAhead || s.RoundTrips > 2 {
			t.Errorf("reverse %v: %d READs, %d round trips for one row of a range", reverse, s.RemoteReads, s.RoundTrips)
		}
	}
	// Leaves alone are read ahead even without ReadAhead.
	before := tr.m.Stats()
	must(t, tr.m, func(tx *txn.Tx) error {
		all, err := scanAll(tr.Scan(tx, nil, nil, false))
		if len(all) != n {
			t.Errorf("%d rows", len(all))
		}
		return err
	})
	if s := tr.m.Stats().Sub(before); s.RoundTrips > s.RemoteReads/8 {
		t.Errorf("%d READs of leaves, %d round trips", s.RemoteReads, s.RoundTrips)
	}
}

// Leaves and rows that a cursor has read ahead are no part of the transaction's reads until the cursor
// passes them. Then they are, with the content that was read ahead.
func TestReadAheadConflicts(t *testing.T) {
	const rows, passed = 300, 60
	for _, test := range []struct {
		name     string
		change   func(tx *txn.Tx, tr *Tree) error
		conflict bool
	}{
		{"a row that was passed", writeRow(passed / 2), true},
		{"a row ahead", writeRow(passed + 20), false},
		{"a key before", deleteKey(passed / 2), true},
		{"a key ahead", deleteKey(passed + 20), false},
		{"a new key before", addKeys(passed/2, 1), true},
		{"a new key ahead", addKeys(passed+20, 1), false},
		{"a split before", addKeys(passed/2, 200), true},
		{"a split ahead", addKeys(passed+20, 200), false},
	} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, early=%v", test.name, early), func(t *testing.T) {
				c := openFarm(t, 2)
				trees := createTree(t, c, Config{})
				makeRows(t, c.Machine(0), trees[0], 0, rows)
				change := func() {
					must(t, c.Machine(0), func(tx *txn.Tx) error { return test.change(tx, trees[0]) })
				}
				must(t, trees[1].m, func(tx *txn.Tx) error { // finds out where leaves are
					_, err := scanAll(trees[1].Scan(tx, nil, nil, false))
					return err
				})
				tx := trees[1].m.Begin()
				defer tx.Abort()
				cursor := trees[1].Scan(tx, intKey(0), intKey(rows), false).ReadAhead(rowsAhead)
				for i := range passed {
					key, p, ok, err := cursor.Next()
					var row []byte
					if err == nil && ok {
						row, err = tx.Read(p)
					}
					if err != nil || !ok || row[0] != byte(i) || !bytes.Equal(key, intKey(i)) {
						t.Fatal(i, key, row, ok, err)
					}
					if i == 0 && early {
						change()
					}
				}
				if !early {
					change()
				}
				own, _, err := trees[1].Get(tx, intKey(rows-1))
				if err == nil {
					_, err = tx.Write(own)
				}
				if err != nil {
					t.Fatal(err)
				}
				err = tx.Commit(ctx)
				if test.conflict != errors.Is(err, outcome.ErrConflict) || !test.conflict && err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func writeRow(i int) func(*txn.Tx, *Tree) error {
	return func(tx *txn.Tx, tr *Tree) error {
		p, _, err := tr.Get(tx, intKey(i))
		if err == nil {
			_, err = tx.Write(p)
		}
		return err
	}
}

func deleteKey(i int) func(*txn.Tx, *Tree) error {
	return func(tx *txn.Tx, tr *Tree) error {
		_, err := tr.Delete(tx, intKey(i))
		return err
	}
}

// addKeys adds n keys right after one.
func addKeys(i, n int) func(*txn.Tx, *Tree) error {
	return func(tx *txn.Tx, tr *Tree) error {
		for k := range n {
			if err := tr.Insert(tx, append(intKey(i), byte(k)), region.Ptr{}); err != nil {
				return err
			}
		}
		return nil
	}
}

// A cursor that has read leaves ahead finds its way while others split and merge these leaves, in
// both directions. It returns each key once and in order. If what it returns is no longer true, the
// transaction does not commit.
func TestReadAheadWhileLeavesChange(t *testing.T) {
	const rows = 400
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	makeRows(t, c.Machine(0), trees[0], 0, rows)
	model := make(map[string]region.Ptr)
	must(t, c.Machine(0), func(tx *txn.Tx) error {
		clear(model)
		all, err := scanAll(trees[0].Scan(tx, nil, nil, false))
		for _, p := range all {
			model[p.key] = p.val
		}
		return err
	})
	r := rand.New(rand.NewPCG(3, 3))
	held := 0
	for round := range 60 {
		reverse := round%2 == 1
		tx := trees[1].m.Begin()
		cursor := trees[1].Scan(tx, intKey(0), intKey(rows), reverse)
		if round%3 > 0 {
			cursor.ReadAhead(1 + r.IntN(rowsAhead))
		}
		var got []pair
		disturbance := r.IntN(2 * rows) // after so many entries, or never
		for {
			key, p, ok, err := cursor.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got = append(got, pair{string(key), p})
			if len(got) == disturbance {
				disturb(t, r, trees[0], model, rows)
			}
		}
		err := tx.Validate()
		tx.Abort()
		if want := within(pairs(model), intKey(0), intKey(rows), reverse); err == nil && !slices.Equal(got, want) {
			t.Fatalf("round %d: %s", round, difference(got, want))
		}
		if err == nil {
			held++
		} else {
			wantConflict(t, err)
		}
		for i := range got[:max(1, len(got))-1] {
			if order := strings.Compare(got[i].key, got[i+1].key); order == 0 || order > 0 != reverse {
				t.Fatalf("round %d: %x before %x", round, got[i].key, got[i+1].key)
			}
		}
	}
	if held == 0 || held == 60 {
		t.Errorf("%d of 60 scans held", held)
	}
}

// disturb adds keys near a random one, or removes some.
func disturb(t *testing.T, r *rand.Rand, tr *Tree, model map[string]region.Ptr, rows int) {
	t.Helper()
	i := r.IntN(rows)
	adds := r.IntN(2) == 0
	must(t, tr.m, func(tx *txn.Tx) error {
		for k := range 40 {
			key := append(intKey(i), byte(k))
			if !adds {
				key = intKey((i + k) % rows)
			}
			if _, err := tr.Delete(tx, key); err != nil {
				return err
			}
			if delete(model, string(key)); !adds {
				continue
			}
			if err := tr.Put(tx, key, region.Ptr{}); err != nil {
				return err
			}
			model[string(key)] = region.Ptr{}
		}
		return nil
	})
}
