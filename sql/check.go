package sql

import (
	"context"
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// Check walks the catalog, every table, every row and every index, and returns the first thing
// that is wrong: a structure that is not sound, a row that does not decode, an index entry
// without its row or a row without its entry. If object is not nil, Check passes it every object
// in use, except the root. It passes every object that was dropped and has not been freed yet to
// dropped or, if that is nil, to object. No statement may run meanwhile, and the catalog may not
// free what is dropped (PauseSweeping).
func (e *Engine) Check(ctx context.Context, root region.Ptr, object, dropped func(region.Ptr) error) error {
	if object == nil {
		object = func(region.Ptr) error { return nil }
	}
	if dropped == nil {
		dropped = object
	}
	c := checker{e: e, ctx: e.NewContext(ctx, e.NewSession("", gms.Client{}, 0)), object: object}
	return e.Store.Catalog.Check(ctx, root, catalog.Visitor{
		Object: object, Table: c.table,
		Dropped: dropped, Row: func(t *txn.Tx, p region.Ptr) error { return eachObject(t, p, dropped) },
	})
}

type checker struct {
	e      *Engine
	ctx    *gms.Context
	object func(region.Ptr) error
}

// eachObject visits a row and the objects that hold its large values.
func eachObject(t *txn.Tx, p region.Ptr, object func(region.Ptr) error) error {
	if err := object(p); err != nil {
		return err
	}
	return row.EachSpill(t, p, func(ref []byte) error { return catalog.ChainLinks(t, ref, object) })
}

// table checks the rows and indexes of one table.
func (c *checker) table(_ *txn.Tx, tbl *catalog.Table) error {
	// Each table has its own transaction, so that its read set can be freed after it.
	t := c.e.Store.Machine.Begin()
	defer t.Abort()
	if err := c.rows(t, tbl); err != nil {
		return fmt.Errorf("table %s.%s: %w", tbl.DB, tbl.Name, err)
	}
	return nil
}

// rows checks that every row has its entries in all indexes, and that no index has other entries.
func (c *checker) rows(t *txn.Tx, tbl *catalog.Table) error {
	info, err := store.NewTableInfo(tbl)
	if err != nil {
		return err
	}
	var compute *store.Computer
	if info.HasComputedKeys() {
		if compute, err = store.NewComputer(c.ctx, info, store.IsVirtual); err != nil {
			return err
		}
	}
	entries := make([]map[string]region.Ptr, len(info.Secondary))
	for i, k := range info.Secondary {
		entries[i] = make(map[string]region.Ptr)
		s := catalog.Storage{Access: k.Access, Anchor: k.Anchor}
		err := c.e.Store.Catalog.Walk(c.ctx.Context, s, c.object, func(key []byte, p region.Ptr) error {
			entries[i][string(key)] = p
			return nil
		})
		if err != nil {
			return fmt.Errorf("index %s: %w", k.Name, err)
		}
	}
	for _, s := range tbl.Alteration.Build { // structures that an alteration is filling
		if err := c.e.Store.Catalog.Walk(c.ctx.Context, s, c.object, func([]byte, region.Ptr) error { return nil }); err != nil {
			return err
		}
	}
	s := catalog.Storage{Access: tbl.Primary.Access, Anchor: tbl.Primary.Anchor}
	err = c.e.Store.Catalog.Walk(c.ctx.Context, s, c.object, func(key []byte, p region.Ptr) error {
		if err := eachObject(t, p, c.object); err != nil {
			return fmt.Errorf("row %x: %w", key, err)
		}
		return c.entries(t, info, compute, entries, key, p)
	})
	if err != nil {
		return err
	}
	for i, remaining := range entries { // entries that belong to no row
		for key, p := range remaining {
			return fmt.Errorf("%w: entry %x of index %s leads to %v, which is no row", row.ErrCorrupt, key, info.Secondary[i].Name, p)
		}
	}
	return nil
}

// entries checks that a row has its entries in the indexes, and removes them from the given
// entries.
func (c *checker) entries(t *txn.Tx, info *store.TableInfo, compute *store.Computer, entries []map[string]region.Ptr, key []byte, p region.Ptr) error {
	r, err := row.Load(t, info.Rows, p, nil)
	if err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	for i := range info.Rows.Columns {
		if col := &info.Rows.Columns[i]; col.NotNull && r[i] == nil {
			return fmt.Errorf("%w: row %x has NULL in column %s, which may have none", row.ErrCorrupt, key, col.Name)
		}
	}
	if r, err = compute.Row(c.ctx, r); err != nil {
		return fmt.Errorf("row %x: %w", key, err)
	}
	for i, k := range info.Secondary {
		entry, _, err := k.Entry(c.ctx, r, key)
		if err != nil {
			return err
		}
		if entries[i][string(entry)] != p {
			return fmt.Errorf("%w: row %x has no entry in index %s", row.ErrCorrupt, key, k.Name)
		}
		delete(entries[i], string(entry))
	}
	return nil
}
