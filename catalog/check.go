package catalog

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A Visitor receives what Check finds. Each func may be nil.
type Visitor struct {
	// Object is called with every object of the catalog, except the root object.
	Object func(region.Ptr) error
	// Dropped is called, in place of Object, with every object of dropped structures
	// that has not been freed yet.
	Dropped func(region.Ptr) error
	// Row is called with the rows of dropped tables.
	Row func(t *txn.Tx, p region.Ptr) error
	// Table is called with every table. Check does not walk the table's structures: the
	// caller can, by Walk.
	Table func(t *txn.Tx, tbl *Table) error
}

// Check walks the catalog and returns an error if it is damaged. Nobody may change it during
// the walk; see PauseSweeping.
func (c *Catalog) Check(ctx context.Context, root region.Ptr, v Visitor) error {
	if v.Object == nil {
		v.Object = func(region.Ptr) error { return nil }
	}
	if v.Dropped == nil {
		v.Dropped = v.Object
	}
	t := c.m.Begin()
	defer t.Abort()
	b, err := t.Read(root)
	if err != nil {
		return err
	}
	anchor, err := region.DecodePtr(b)
	if err != nil {
		return err
	}
	if err := v.Object(anchor); err != nil {
		return err
	}
	_, err = c.names.Inspect(ctx, btree.Visitor{Node: v.Object, Entry: func(key []byte, p region.Ptr) error {
		if err := c.checkName(ctx, t, key, p, v); err != nil {
			return fmt.Errorf("catalog: name %q: %w", key, err)
		}
		return nil
	}})
	return err
}

// checkName visits the object that a name leads to, and decodes it. Settings and accounts have
// nothing further to check.
func (c *Catalog) checkName(ctx context.Context, t *txn.Tx, key []byte, p region.Ptr, v Visitor) error {
	if key[0] == nameForeign {
		return nil // points to a table, which is visited under its own name
	}
	if err := v.Object(p); err != nil {
		return err
	}
	if key[0] == nameTable {
		return c.checkTable(t, key, p, v)
	}
	b, err := get(t, p)
	if err != nil {
		return err
	}
	switch key[0] {
	case nameDatabase:
		_, err = DecodeDatabase(b)
	case nameSetting, nameAccount:
	case nameDropped:
		return c.checkDropped(ctx, t, b, v)
	default:
		_, err = DecodeDefinition(b)
	}
	return err
}

// checkTable visits a table and its objects. It checks that each foreign key that references the
// table exists.
func (c *Catalog) checkTable(t *txn.Tx, key []byte, head region.Ptr, v Visitor) error {
	tbl, err := c.load(t, string(key), head)
	if err != nil {
		return err
	}
	for _, p := range []region.Ptr{tbl.body, tbl.Sequence, tbl.RowSequence, tbl.Counter} {
		if p.IsNil() {
			continue
		}
		if err := v.Object(p); err != nil {
			return err
		}
	}
	for _, r := range tbl.ReferencedBy {
		child, err := c.Table(t, r.DB, r.Table)
		if err != nil || child.ForeignKey(r.Name) < 0 {
			return fmt.Errorf("%w: foreign key %s of %s.%s is not there: %w", ErrCorrupt, r.Name, r.DB, r.Table, err)
		}
	}
	if v.Table == nil {
		return nil
	}
	return v.Table(t, tbl)
}

// checkDropped visits the structures of a dropping that are not freed yet, and their rows.
func (c *Catalog) checkDropped(ctx context.Context, t *txn.Tx, b []byte, v Visitor) error {
	storage, err := decodeStorage(b)
	if err != nil {
		return err
	}
	for _, s := range storage {
		gone, err := c.isFreed(t, s.Anchor)
		if err != nil {
			return err
		}
		if gone {
			continue
		}
		err = c.walk(ctx, s, true, v.Dropped, func(_ []byte, p region.Ptr) error {
			if !s.Rows || v.Row == nil {
				return nil
			}
			return v.Row(t, p)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isFreed reports whether a dropped structure has been freed already.
func (c *Catalog) isFreed(t *txn.Tx, anchor region.Ptr) (bool, error) {
	_, _, err := t.Peek(anchor)
	if IsFreed(err) {
		return true, nil
	}
	return false, err
}

// Walk checks one structure and visits its objects and entries.
func (c *Catalog) Walk(ctx context.Context, s Storage, object func(region.Ptr) error, entry func(key []byte, row region.Ptr) error) error {
	return c.walk(ctx, s, false, object, entry)
}

// walk is like Walk, but can also walk a structure that was dropped. Of such a structure it visits
// only the objects that have not been freed yet.
func (c *Catalog) walk(ctx context.Context, s Storage, dropped bool, object func(region.Ptr) error, entry func(key []byte, row region.Ptr) error) error {
	if s.Access == AccessHash {
		return c.Hash(s.Anchor).Check(ctx, hash.Visitor{Destroying: dropped, Node: object, Pair: func(key, value []byte) error {
			p, err := region.DecodePtr(value)
			if err != nil {
				return err
			}
			return entry(key, p)
		}})
	}
	_, err := c.Tree(s.Anchor).Inspect(ctx, btree.Visitor{Node: object, Entry: entry})
	return err
}
