package store

import (
	"bytes"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// This file looks up together those keys that a statement is going to look up one by one.

// IsElsewhere reports whether an index is probably at other machines: it has grown near its anchor, and
// the anchor is at another machine.
func (t *IndexedTable) IsElsewhere(x *Index) bool {
	return !t.Store.Machine.IsPrimary(x.Key.Index.Anchor.Addr)
}

// LookUpAhead takes those of the given ranges of a unique index that hold a single key, looks up
// their keys together, and reads their rows ahead; the statement is going to read them one by one. It
// does nothing for a statement of an open transaction that changes or locks the rows: such a
// statement first waits for its turn at each row, and a row read before that is too old.
func (t *IndexedTable) LookUpAhead(ctx *gms.Context, x *Index, ranges []KeyRange) error {
	tr := Current(ctx)
	if tr == nil || t.keysOnly || t.Store.Catalog.Changed(tr.Tx) {
		return nil
	}
	if s := FromContext(ctx); s.IsOpen() && (s.ForUpdate || tr.Editing > 0) {
		return nil
	}
	var keys [][]byte
	for _, r := range ranges {
		if r.Point && !r.HasNull {
			keys = append(keys, r.Low)
		}
	}
	if err := t.join(ctx, tr); err != nil {
		return myerr.Storage(err)
	}
	return t.getAhead(tr, x.Key, keys)
}

// getAhead gets the keys of an index together, and reads their rows ahead.
func (t *Table) getAhead(tr *Transaction, k *KeyInfo, keys [][]byte) error {
	slices.SortFunc(keys, bytes.Compare)
	if keys = slices.CompactFunc(keys, bytes.Equal); len(keys) < 2 {
		return nil
	}
	rows, err := t.Store.Access(k.Index).GetMany(tr.Tx, keys, nil)
	if err == nil {
		tr.Tx.ReadAhead(rows)
	}
	return myerr.Storage(err)
}
