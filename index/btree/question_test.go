package btree

import (
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// A question that could not be asked again stays open and keeps the sources of its last answer.
// Without them the next validation would have nothing to compare, and would accept the answer
// unchecked.
func TestUnansweredQuestionStaysOpen(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	must(t, tr.m, func(tx *txn.Tx) error { return tr.Insert(tx, intKey(1), rowPtr(1)) })
	tx := tr.m.Begin()
	defer tx.Abort()
	cursor := tr.Scan(tx, nil, nil, false)
	for ok := true; ok; {
		var err error
		if _, _, ok, err = cursor.Next(); err != nil {
			t.Fatal(err)
		}
	}
	q := &tr.pendingOf(tx).ranges.chunk[0]
	before := slices.Clone(q.Sources())
	must(t, tr.m, func(tx *txn.Tx) error {
		b, err := tx.Write(before[0].Ptr)
		if err == nil {
			clear(b) // no leaf any more
		}
		return err
	})
	for range 2 {
		if err := tx.Validate(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("validated: %v", err)
		}
		if got := q.Sources(); !slices.Equal(got, before) {
			t.Errorf("sources are %v, were %v", got, before)
		}
	}
}
