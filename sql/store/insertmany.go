package store

import (
	"bytes"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/sql/row"
)

// InsertMany inserts new rows together, index by index, so that those whose keys are neighbours share a search. It inserts all
// or none: it returns false if a unique key of one of them exists, in the table or among the rows.
func (e *Editor) InsertMany(ctx *gms.Context, rows []gms.Row) (ok bool, err error) {
	exists := false
	err = e.atomically(ctx, func() error {
		err := e.insertMany(ctx, rows)
		exists = err == errExists
		return err
	})
	if exists {
		return false, nil
	}
	return err == nil, err
}

// insertMany returns errExists if a unique key exists.
func (e *Editor) insertMany(ctx *gms.Context, rows []gms.Row) error {
	stored, primary, err := e.storeMany(ctx, rows)
	if err != nil {
		return err
	}
	entries := slices.Clone(primary)
	if err := e.enter(e.Info.PrimaryKey, entries, true); err != nil {
		return err
	}
	for _, k := range e.Info.checked {
		if err := e.enterMany(ctx, k, stored, primary, entries); err != nil {
			return err
		}
	}
	most := uint64(0)
	for _, r := range stored {
		if err := e.referred(ctx, nil, r); err != nil {
			return err
		}
		if replacing := e.replacingOf(); replacing != nil {
			replacing.noteInsert(ctx, e, r)
		}
		e.noteStored(ctx, r, true)
		if n, ok := e.autoValue(ctx, r); ok {
			most = max(most, n)
		}
	}
	e.tr.count(e.Info.Counter, int64(len(rows)))
	return e.raiseTo(ctx, most)
}

// storeMany stores rows. It returns their stored forms, and their entries in the primary index.
func (e *Editor) storeMany(ctx *gms.Context, rows []gms.Row) (stored []gms.Row, primary []btree.Entry, err error) {
	stored, primary = make([]gms.Row, len(rows)), make([]btree.Entry, len(rows))
	for i, r := range rows {
		r = e.Info.Rows.Stored(r)
		if err := e.constrain(ctx, r); err != nil {
			return nil, nil, err
		}
		key, number, err := e.primaryKey(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		if r, err = e.withKeyColumns(ctx, r); err != nil {
			return nil, nil, err
		}
		if err := e.Info.Rows.HasAll(r); err != nil {
			return nil, nil, err
		}
		p, err := row.Store(ctx, e.tr.Tx, e.Info.Rows, r, number, 0)
		if err != nil {
			return nil, nil, err
		}
		stored[i], primary[i] = r, btree.Entry{Key: key, Value: p}
	}
	return stored, primary, nil
}

// enterMany adds the entries of rows to a secondary index. primary are their entries in the primary index; room has room for
// as many.
func (e *Editor) enterMany(ctx *gms.Context, k *KeyInfo, rows []gms.Row, primary, room []btree.Entry) error {
	unique, other := room[:0], []btree.Entry(nil)
	for i, r := range rows {
		key, isUnique, err := k.Entry(ctx, r, primary[i].Key)
		if err != nil {
			return err
		}
		entry := btree.Entry{Key: key, Value: primary[i].Value}
		if k.Unique && !isUnique {
			other = append(other, entry)
		} else {
			unique = append(unique, entry)
		}
	}
	if err := e.enter(k, other, false); err != nil {
		return err
	}
	return e.enter(k, unique, k.Unique)
}

// enter adds entries to an index, which it sorts. If they are unique, it returns errExists if a key exists.
func (e *Editor) enter(k *KeyInfo, entries []btree.Entry, isUnique bool) error {
	slices.SortFunc(entries, func(a, b btree.Entry) int { return bytes.Compare(a.Key, b.Key) })
	acc := e.Store.Access(k.Index)
	if !isUnique {
		return acc.PutMany(e.tr.Tx, entries)
	}
	for i := 1; i < len(entries); i++ {
		if bytes.Equal(entries[i-1].Key, entries[i].Key) {
			return errExists
		}
	}
	return acc.InsertMany(e.tr.Tx, entries)
}
