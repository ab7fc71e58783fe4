package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// errExists is the error of hash tables and B-trees for a key that exists.
var errExists = errors.New("sql: key exists")

// An Access is the structure of an index: it maps keys to the addresses of rows.
type Access interface {
	Get(t *txn.Tx, key []byte) (region.Ptr, bool, error)
	// GetMany gets many keys together. It appends the address of each key's row to rows, nil if
	// there is none, in the order of keys.
	GetMany(t *txn.Tx, keys [][]byte, rows []region.Ptr) ([]region.Ptr, error)
	// Has is like Get, for callers that need to know only whether there is a row: if the row moves
	// to another address, they have no conflict.
	Has(t *txn.Tx, key []byte) (bool, error)
	// Insert fails with errExists if the key exists; Put then replaces the key's row.
	Insert(t *txn.Tx, key []byte, row region.Ptr) error
	Put(t *txn.Tx, key []byte, row region.Ptr) error
	// InsertMany and PutMany do the Inserts and Puts of many entries together. The keys are in ascending order, none twice, and do
	// not change until the transaction ends. If a key exists, InsertMany fails with errExists, and the caller rolls back.
	InsertMany(t *txn.Tx, entries []btree.Entry) error
	PutMany(t *txn.Tx, entries []btree.Entry) error
	// Remove reports whether the key existed.
	Remove(t *txn.Tx, key []byte) (bool, error)
	// Drop removes a key that exists if the transaction commits, because it has read the key's row. It need not read the index.
	Drop(t *txn.Tx, key []byte) error
	// Scan returns a cursor over the keys in [lo, hi), in key order if the structure has
	// one; nil is an open end. A hash table ignores reverse.
	Scan(t *txn.Tx, lo, hi []byte, reverse bool) cursor
	// Rows is like Scan, for a caller that reads the rows one by one. It reads ahead for a caller
	// that probably reads n rows, and perhaps all.
	Rows(t *txn.Tx, lo, hi []byte, reverse bool, n int) cursor
	// Keys is like Scan, for callers that need only the keys.
	Keys(t *txn.Tx, lo, hi []byte) cursor
}

// A cursor returns a key that is valid until the next call.
type cursor interface {
	Next() (key []byte, row region.Ptr, ok bool, err error)
}

// Access returns the structure of an index.
func (st *Store) Access(x *catalog.Index) Access {
	if x.Access == catalog.AccessHash {
		return hashAccess{st.Catalog.Hash(x.Anchor)}
	}
	return treeAccess{st.Catalog.Tree(x.Anchor)}
}

// A treeAccess turns btree.ErrDestroyed into a conflict, as hash tables do with their own error:
// the statement found the tree through the catalog, which has changed since.
type treeAccess struct{ tree *btree.Tree }

// inTx turns btree.ErrDestroyed, the error of a tree that has been freed, into a conflict of the
// transaction.
func (a treeAccess) inTx(err error) error {
	if errors.Is(err, btree.ErrDestroyed) && !errors.Is(err, outcome.ErrConflict) {
		return &txn.AbortError{Reason: txn.ReasonFreed, Addr: a.tree.Anchor().Addr}
	}
	return err
}

func (a treeAccess) Get(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	p, ok, err := a.tree.Get(t, key)
	return p, ok, a.inTx(err)
}

func (a treeAccess) GetMany(t *txn.Tx, keys [][]byte, rows []region.Ptr) ([]region.Ptr, error) {
	err := a.tree.GetMany(t, keys, func(_ int, p region.Ptr, ok bool) {
		if !ok {
			p = region.Ptr{}
		}
		rows = append(rows, p)
	})
	return rows, a.inTx(err)
}

func (a treeAccess) Has(t *txn.Tx, key []byte) (bool, error) {
	ok, err := a.tree.Has(t, key)
	return ok, a.inTx(err)
}

func (a treeAccess) Insert(t *txn.Tx, key []byte, row region.Ptr) error {
	err := a.tree.Insert(t, key, row)
	if errors.Is(err, btree.ErrExists) {
		return errExists
	}
	return a.inTx(err)
}

func (a treeAccess) Put(t *txn.Tx, key []byte, row region.Ptr) error {
	return a.inTx(a.tree.Put(t, key, row))
}

func (a treeAccess) Remove(t *txn.Tx, key []byte) (bool, error) {
	ok, err := a.tree.Delete(t, key)
	return ok, a.inTx(err)
}

func (a treeAccess) InsertMany(t *txn.Tx, entries []btree.Entry) error {
	err := a.tree.InsertMany(t, entries)
	if errors.Is(err, btree.ErrExists) {
		return errExists
	}
	return a.inTx(err)
}

func (a treeAccess) PutMany(t *txn.Tx, entries []btree.Entry) error {
	return a.inTx(a.tree.PutMany(t, entries))
}

func (a treeAccess) Drop(t *txn.Tx, key []byte) error { return a.inTx(a.tree.Drop(t, key)) }

func (a treeAccess) Scan(t *txn.Tx, lo, hi []byte, reverse bool) cursor {
	return &treeCursor{a.tree.Scan(t, lo, hi, reverse), a}
}

func (a treeAccess) Rows(t *txn.Tx, lo, hi []byte, reverse bool, n int) cursor {
	return &treeCursor{a.tree.Scan(t, lo, hi, reverse).ReadAhead(n), a}
}

func (a treeAccess) Keys(t *txn.Tx, lo, hi []byte) cursor {
	return &treeCursor{a.tree.Scan(t, lo, hi, false).KeysOnly(), a}
}

type treeCursor struct {
	*btree.Cursor
	access treeAccess
}

func (c *treeCursor) Next() (key []byte, row region.Ptr, ok bool, err error) {
	key, row, ok, err = c.Cursor.Next()
	return key, row, ok, c.access.inTx(err)
}

func (c *treeCursor) Skip(n int) (int, error) {
	n, err := c.Cursor.Skip(n)
	return n, c.access.inTx(err)
}

func (c *treeCursor) NextMany(values []region.Ptr, n int) ([]region.Ptr, error) {
	values, err := c.Cursor.NextMany(values, n)
	return values, c.access.inTx(err)
}

type hashAccess struct{ table *hash.Table }

func (a hashAccess) Get(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	v, ok, err := a.table.Get(t, key)
	if err != nil || !ok {
		return region.Ptr{}, false, err
	}
	p, err := region.DecodePtr(v)
	return p, err == nil, err
}

func (a hashAccess) GetMany(t *txn.Tx, keys [][]byte, rows []region.Ptr) ([]region.Ptr, error) {
	var invalid error
	err := a.table.GetMany(t, keys, func(_ int, value []byte, ok bool) {
		var p region.Ptr
		if ok {
			var failed error
			p, failed = region.DecodePtr(value)
			invalid = cmp.Or(invalid, failed)
		}
		rows = append(rows, p)
	})
	return rows, cmp.Or(err, invalid)
}

func (a hashAccess) Has(t *txn.Tx, key []byte) (bool, error) { return a.table.Has(t, key) }

func (a hashAccess) Insert(t *txn.Tx, key []byte, row region.Ptr) error {
	err := a.table.Insert(t, key, row.Append(nil))
	if errors.Is(err, hash.ErrExists) {
		return errExists
	}
	return err
}

func (a hashAccess) Put(t *txn.Tx, key []byte, row region.Ptr) error {
	return a.table.Put(t, key, row.Append(nil))
}

func (a hashAccess) Remove(t *txn.Tx, key []byte) (bool, error) { return a.table.Delete(t, key) }

func (a hashAccess) InsertMany(t *txn.Tx, entries []btree.Entry) error {
	keys := make([][]byte, len(entries))
	for i := range entries {
		keys[i] = entries[i].Key
	}
	if _, err := a.GetMany(t, keys, nil); err != nil { // Insert finds the answers
		return err
	}
	return a.each(t, entries, a.Insert)
}

func (a hashAccess) PutMany(t *txn.Tx, entries []btree.Entry) error { return a.each(t, entries, a.Put) }

// each calls f for entries.
func (a hashAccess) each(t *txn.Tx, entries []btree.Entry, f func(*txn.Tx, []byte, region.Ptr) error) error {
	for i := range entries {
		if err := f(t, entries[i].Key, entries[i].Value); err != nil {
			return err
		}
	}
	return nil
}

func (a hashAccess) Drop(t *txn.Tx, key []byte) error {
	_, err := a.Remove(t, key)
	return err
}

func (a hashAccess) Scan(t *txn.Tx, lo, hi []byte, reverse bool) cursor {
	return &hashCursor{Cursor: a.table.Scan(t), lo: lo, hi: hi}
}

func (a hashAccess) Rows(t *txn.Tx, lo, hi []byte, _ bool, _ int) cursor {
	return a.Scan(t, lo, hi, false)
}

func (a hashAccess) Keys(t *txn.Tx, lo, hi []byte) cursor { return a.Scan(t, lo, hi, false) }

// A hashCursor filters a scan of the whole hash table by key.
type hashCursor struct {
	*hash.Cursor
	lo, hi []byte
}

func (c *hashCursor) Next() (key []byte, row region.Ptr, ok bool, err error) {
	for {
		k, v, ok, err := c.Cursor.Next()
		if err != nil || !ok {
			return nil, region.Ptr{}, false, err
		}
		if bytes.Compare(k, c.lo) < 0 || (c.hi != nil && bytes.Compare(k, c.hi) >= 0) {
			continue
		}
		p, err := region.DecodePtr(v)
		return k, p, err == nil, err
	}
}

func rowNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
