package store

import (
	"bytes"
	"context"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// This file looks up together those keys that a statement is going to look up one by one.

// IsElsewhere reports whether an index is probably at other machines: indexes grow near their anchor, and this anchor
// is at another machine.
func (t *Table) IsElsewhere(k *KeyInfo) bool {
	return !t.Store.Machine.IsPrimary(k.Index.Anchor.Addr)
}

// LookUpAhead looks up together the keys of those given ranges that hold a single key of a unique index, and reads
// their rows ahead. The statement will read these rows one by one. LookUpAhead does nothing for a statement of an
// open transaction that changes or locks the rows: such a statement first waits for its turn at each row, and a row read
// before that is too old. Nor does it do anything if only the rows' existence matters, or if the transaction has changed
// the catalog.
func (t *IndexedTable) LookUpAhead(ctx *gms.Context, x *Index, ranges []KeyRange) error {
	tr := Current(ctx)
	if tr == nil || t.keysOnly || t.Store.Catalog.Changed(tr.Tx) {
		return nil
	}
	if s := FromContext(ctx); s.IsOpen() && (s.ForUpdate || tr.Editing > 0) {
		return nil
	}
	if err := t.join(ctx, tr); err != nil {
		return myerr.Storage(err)
	}
	return t.GetAhead(tr, x.Key, ranges)
}

// GetAhead is LookUpAhead for a statement that neither changes nor locks rows, and depends on the
// table's descriptor already.
func (t *Table) GetAhead(tr *Transaction, k *KeyInfo, ranges []KeyRange) error {
	var keys [][]byte
	for _, r := range ranges {
		if r.Point && !r.HasNull {
			keys = append(keys, r.Low)
		}
	}
	return t.getAhead(tr, k, keys)
}

// An Unknown stands, in a row for InsertAhead, for a value that is known only when the row is
// inserted.
type Unknown struct{}

// InsertAhead looks up the keys of new rows together, in the indexes that are likely to be at other machines. Then the
// statement inserts the rows one by one, and asks for these keys again. The values may lack the conversions of an
// INSERT: if a conversion changes a key, that key was looked up in vain.
func (t *Table) InsertAhead(ctx *gms.Context, rows []gms.Row) error {
	tr := Current(ctx)
	if tr == nil || t.Store.Catalog.Changed(tr.Tx) {
		return nil
	}
	if err := t.join(ctx, tr); err != nil {
		return myerr.Storage(err)
	}
	for _, k := range t.Info.Keys() {
		if !t.IsElsewhere(k) || !t.Info.IsUnique(k) { // nobody asks for a key that is not unique
			continue
		}
		if err := t.getAhead(tr, k, t.Info.newKeys(ctx, k, rows)); err != nil {
			return err
		}
	}
	return nil
}

// IsAnyElsewhere reports whether any index is likely to be at other machines.
func (t *Table) IsAnyElsewhere() bool { return slices.ContainsFunc(t.Info.Keys(), t.IsElsewhere) }

// newKeys returns the keys of new rows in an index, without keys that are not known yet.
func (info *TableInfo) newKeys(ctx *gms.Context, k *KeyInfo, rows []gms.Row) [][]byte {
	keys := make([][]byte, 0, len(rows))
	for _, r := range rows {
		// Without the session, a conversion cannot warn: the INSERT does, when it converts the value.
		if key, ok := info.newKey(ctx.Context, k, r); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// newKey returns the key of a new row in an index; false if it is not known, or the INSERT is going to
// refuse it.
func (info *TableInfo) newKey(ctx context.Context, k *KeyInfo, r gms.Row) ([]byte, bool) {
	if k != info.PrimaryKey && !k.knows(r) {
		return nil, false
	}
	var primary []byte
	known := !info.IsKeyless() && info.PrimaryKey.knows(r)
	if known {
		var err error
		primary, _, err = info.PrimaryKey.key(ctx, nil, r)
		known = err == nil && len(primary) <= row.KeyBytesMax
	}
	if k == info.PrimaryKey {
		return primary, known
	}
	key, unique, err := k.Entry(ctx, r, primary)
	return key, err == nil && (unique || known)
}

// knows reports whether a row has the values of k's columns.
func (k *KeyInfo) knows(r gms.Row) bool {
	return !slices.ContainsFunc(k.Columns, func(at int) bool {
		_, unknown := r[at].(Unknown)
		return unknown
	})
}

// getAhead gets the keys of an index together, and reads their rows ahead. For a single key it does nothing.
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
