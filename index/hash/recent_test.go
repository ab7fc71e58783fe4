package hash

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// Once Tx.ValidateRecent has validated that a key is there, its value, which is read later, is
// validated as well.
func TestValidateRecentOfValueAfterExistence(t *testing.T) {
	const keys = 300 // so many that ValidateRecent does not check everything
	tb := newTable(t, Config{Buckets: 16})
	for i := range keys {
		put(t, tb, testKey(i), []byte("v"))
	}
	tx := tb.m.Begin()
	defer tx.Abort()
	for i := range keys {
		if ok, err := tb.Has(tx, testKey(i)); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if err := tx.ValidateRecent(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tb.Get(tx, testKey(0)); err != nil {
		t.Fatal(err)
	}
	put(t, tb, testKey(0), []byte("w"))
	var aborted *txn.AbortError
	if err := tx.ValidateRecent(); !errors.As(err, &aborted) || aborted.Reason != txn.ReasonAnswer {
		t.Error(err)
	}
}
