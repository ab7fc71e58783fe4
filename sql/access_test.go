package sql

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// If an index is dropped while a statement uses it, the statement has a conflict, whatever the
// structure of the index and the operation.
func TestIndexGone(t *testing.T) {
	in := newInstance(t)
	for _, kind := range []catalog.Access{catalog.AccessBTree, catalog.AccessHash} {
		var anchor region.Ptr
		if err := in.e.Store.Machine.Run(t.Context(), func(tx *txn.Tx) (err error) {
			anchor, err = store.CreateAccess(tx, kind)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		acc := in.e.Store.Access(&catalog.Index{Access: kind, Anchor: anchor})
		var err error
		if kind == catalog.AccessHash {
			err = in.e.Store.Catalog.Hash(anchor).Destroy(t.Context(), nil)
		} else {
			err = in.e.Store.Catalog.Tree(anchor).Destroy(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, ask := range map[string]func(*txn.Tx) error{
			"get":    func(tx *txn.Tx) error { _, _, err := acc.Get(tx, []byte("k")); return err },
			"has":    func(tx *txn.Tx) error { _, err := acc.Has(tx, []byte("k")); return err },
			"insert": func(tx *txn.Tx) error { return acc.Insert(tx, []byte("k"), anchor) },
			"put":    func(tx *txn.Tx) error { return acc.Put(tx, []byte("k"), anchor) },
			"remove": func(tx *txn.Tx) error { _, err := acc.Remove(tx, []byte("k")); return err },
			"scan":   func(tx *txn.Tx) error { _, _, _, err := acc.Scan(tx, nil, nil, false).Next(); return err },
			"keys":   func(tx *txn.Tx) error { _, _, _, err := acc.Keys(tx, nil, nil).Next(); return err },
		} {
			tx := in.e.Store.Machine.Begin()
			if err := ask(tx); !errors.Is(err, outcome.ErrConflict) {
				if err = tx.Commit(t.Context()); !errors.Is(err, outcome.ErrConflict) {
					t.Errorf("access %v, %s: %v", kind, name, err)
				}
			}
			tx.Abort()
		}
	}
}
