package sql

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// errExists says that a key is taken, whichever structure says so.
var errExists = errors.New("sql: key exists")

// An access is an index's structure: keys that lead to rows.
type access interface {
	get(t *txn.Tx, key []byte) (region.Ptr, bool, error)
	// has is get for who only asks whether there is a row: that it moves to
	// another address is no conflict.
	has(t *txn.Tx, key []byte) (bool, error)
	insert(t *txn.Tx, key []byte, row region.Ptr) error
	put(t *txn.Tx, key []byte, row region.Ptr) error
	remove(t *txn.Tx, key []byte) (bool, error)
	// scan goes through the keys in [lo, hi), in their order if the structure
	// has one; nil is an open end.
	scan(t *txn.Tx, lo, hi []byte, reverse bool) cursor
	// keys is scan for who only asks which keys there are.
	keys(t *txn.Tx, lo, hi []byte) cursor
}

// A cursor returns a key that is valid until the next call.
type cursor interface {
	Next() (key []byte, row region.Ptr, ok bool, err error)
}

func (st *Store) access(x *catalog.Index) access {
	if x.Access == catalog.AccessHash {
		return hashAccess{st.cat.Hash(x.Anchor)}
	}
	return treeAccess{st.cat.Tree(x.Anchor)}
}

// A treeAccess makes of the news that the tree is gone a conflict, as hash tables do: the
// statement came by it through the catalog, which has changed.
type treeAccess struct{ tree *btree.Tree }

func (a treeAccess) inTx(err error) error {
	if errors.Is(err, btree.ErrDestroyed) && !errors.Is(err, txn.ErrConflict) {
		return &txn.AbortError{Reason: txn.ReasonFreed, Addr: a.tree.Anchor().Addr}
	}
	return err
}

func (a treeAccess) get(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	p, ok, err := a.tree.Get(t, key)
	return p, ok, a.inTx(err)
}

func (a treeAccess) has(t *txn.Tx, key []byte) (bool, error) {
	ok, err := a.tree.Has(t, key)
	return ok, a.inTx(err)
}

func (a treeAccess) insert(t *txn.Tx, key []byte, row region.Ptr) error {
	err := a.tree.Insert(t, key, row)
	if errors.Is(err, btree.ErrExists) {
		return errExists
	}
	return a.inTx(err)
}

func (a treeAccess) put(t *txn.Tx, key []byte, row region.Ptr) error {
	return a.inTx(a.tree.Put(t, key, row))
}

func (a treeAccess) remove(t *txn.Tx, key []byte) (bool, error) {
	ok, err := a.tree.Delete(t, key)
	return ok, a.inTx(err)
}

func (a treeAccess) scan(t *txn.Tx, lo, hi []byte, reverse bool) cursor {
	return &treeCursor{a.tree.Scan(t, lo, hi, reverse), a}
}

func (a treeAccess) keys(t *txn.Tx, lo, hi []byte) cursor {
	return &treeCursor{a.tree.Scan(t, lo, hi, false).KeysOnly(), a}
}

type treeCursor struct {
	*btree.Cursor
	of treeAccess
}

func (c *treeCursor) Next() (key []byte, row region.Ptr, ok bool, err error) {
	key, row, ok, err = c.Cursor.Next()
	return key, row, ok, c.of.inTx(err)
}

type hashAccess struct{ table *hash.Table }

func (a hashAccess) get(t *txn.Tx, key []byte) (region.Ptr, bool, error) {
	v, ok, err := a.table.Get(t, key)
	if err != nil || !ok {
		return region.Ptr{}, false, err
	}
	p, err := region.DecodePtr(v)
	return p, err == nil, err
}

func (a hashAccess) has(t *txn.Tx, key []byte) (bool, error) { return a.table.Has(t, key) }

func (a hashAccess) insert(t *txn.Tx, key []byte, row region.Ptr) error {
	err := a.table.Insert(t, key, row.Append(nil))
	if errors.Is(err, hash.ErrExists) {
		return errExists
	}
	return err
}

func (a hashAccess) put(t *txn.Tx, key []byte, row region.Ptr) error {
	return a.table.Put(t, key, row.Append(nil))
}

func (a hashAccess) remove(t *txn.Tx, key []byte) (bool, error) { return a.table.Delete(t, key) }

func (a hashAccess) scan(t *txn.Tx, lo, hi []byte, reverse bool) cursor {
	return &hashCursor{Cursor: a.table.Scan(t), lo: lo, hi: hi}
}

func (a hashAccess) keys(t *txn.Tx, lo, hi []byte) cursor { return a.scan(t, lo, hi, false) }

// A hashCursor filters a scan of everything.
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
		if bytes.Compare(k, c.lo) < 0 || c.hi != nil && bytes.Compare(k, c.hi) >= 0 {
			continue
		}
		p, err := region.DecodePtr(v)
		return k, p, err == nil, err
	}
}

func rowNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
