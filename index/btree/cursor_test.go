package btree

import (
	"context"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// A prefix is a range, even if the next prefix does not exist or is shorter.
func TestScanPrefix(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	keys := []string{"", "a", "a\xff", "a\xff\x00", "a\xff\xff", "b", "b\x00", "ba", "\xff", "\xff\xff", "\xff\xff\x01"}
	must(t, tr.m, func(tx *txn.Tx) error {
		for i, k := range keys {
			if err := tr.Insert(tx, []byte(k), rowPtr(i)); err != nil {
				return err
			}
		}
		return nil
	})
	for prefix, want := range map[string][]string{
		"": keys, "a": keys[1:5], "a\xff": keys[2:5], "a\xff\xff": keys[4:5], "b": keys[5:8], "c": nil, "\xff": keys[8:], "\xff\xff": keys[9:], "\xff\xff\xff": nil,
	} {
		for _, reverse := range []bool{false, true} {
			must(t, tr.m, func(tx *txn.Tx) error {
				var got []string
				given := []byte(prefix)
				cursor := tr.ScanPrefix(tx, given, reverse)
				for key, p := range cursor.All() {
					if i := slices.Index(keys, string(key)); p != rowPtr(i) {
						t.Errorf("%x leads to %v", key, p)
					}
					got = append(got, string(key))
				}
				if reverse {
					slices.Reverse(got)
				}
				if !slices.Equal(got, want) || string(given) != prefix {
					t.Errorf("prefix %x: %x, want %x", prefix, got, want)
				}
				return cursor.Err()
			})
		}
	}
}

// After a break out of a loop over a cursor, the next loop continues with the next entry. A loop ends
// at an error, and Err returns it.
func TestCursorAll(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	insertRange(t, tr, 0, 100)
	tx := tr.m.Begin()
	cursor := tr.Scan(tx, nil, nil, false)
	at := 0
	for _, limit := range []int{1, 2, 50, 1000} {
		for key, p := range cursor.All() {
			if string(key) != string(intKey(at)) || p != rowPtr(at) {
				t.Fatalf("%x at %d", key, at)
			}
			if at++; at >= limit {
				break
			}
		}
	}
	if at != 100 || cursor.Err() != nil {
		t.Errorf("%d entries, %v", at, cursor.Err())
	}
	open := tr.Scan(tx, nil, nil, false)
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	for key := range open.All() {
		t.Errorf("%x after the transaction", key)
	}
	if open.Err() != txn.ErrDone {
		t.Error(open.Err())
	}
}
