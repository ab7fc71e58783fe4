package simtest

import (
	"errors"
	"slices"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Definers are clients that create, change, rename and drop tables, and build indexes in several
// transactions while the table is marked. Each machine has one definer; all work on the same few
// names.

// define runs one statement.
func (c *client) define() error {
	if c.catalog == nil {
		return passes(c.outcome(c.openCatalog(c.node)))
	}
	i := c.pick(c.options.Tables)
	switch c.rng.IntN(6) {
	case 0:
		return c.buildIndex(i)
	case 1:
		return c.transact(func() error { return c.onTable(i, true) })
	}
	done := c.done
	err := c.transact(func() error { return c.redefine(i) })
	c.result.Tables += c.done - done // 1 if it has committed
	return err
}

// redefine creates the table of a name if it does not exist, and otherwise drops, renames or
// changes it.
func (c *client) redefine(i int) error {
	tbl, err := c.definition(i)
	switch {
	case err != nil:
		return err
	case tbl == nil:
		return c.createTable(i)
	}
	switch c.rng.IntN(4) {
	case 0:
		if err := c.catalog.DropTable(c.t, tbl); err != nil {
			return err
		}
		return c.bury(objectOf(inCatalog, i), c.store.tableTombs[i])
	case 1:
		return c.renameTable(i, tbl)
	}
	next := tbl.Clone()
	next.Comment = c.comment(i)
	_, err = c.catalog.UpdateTable(c.t, next)
	return err
}

func (c *client) createTable(i int) error {
	tbl := &catalog.Table{DB: tableDB, Name: tableName(i), Comment: c.comment(i)}
	anchor, err := btree.Create(c.t, btree.Config{LeafBytes: c.options.LeafBytes, InnerBytes: 600}, 0)
	if err != nil {
		return err
	}
	tbl.Primary = catalog.Index{Name: "PRIMARY", Unique: true, Declared: true, Anchor: anchor}
	if tbl.Sequence, err = catalog.NewNumber(c.t, 1); err != nil {
		return err
	}
	_, err = c.catalog.CreateTable(c.t, tbl)
	return err
}

// renameTable moves a table to another name, if no table has that name.
func (c *client) renameTable(i int, tbl *catalog.Table) error {
	to := c.rng.IntN(c.options.Tables)
	if to == i {
		return nil
	}
	if taken, err := c.definition(to); err != nil || taken != nil {
		return err
	}
	moved, err := c.catalog.RenameTable(c.t, tbl, tableDB, tableName(to))
	if err != nil {
		return err
	}
	next := moved.Clone()
	next.Comment = c.comment(to)
	if _, err := c.catalog.UpdateTable(c.t, next); err != nil {
		return err
	}
	return c.bury(objectOf(inCatalog, i), c.store.tableTombs[i])
}

// A building is an index that is being built.
type building struct {
	*client
	name  int
	index catalog.Index
	owner uint64 // owner of the table's alteration; 0 if there is none
}

// entriesCopied is how many entries of an index are made in one transaction.
const entriesCopied = 5

// buildIndex builds an index, as CREATE INDEX does: it marks the table, copies the entries, some in
// each transaction, and replaces the former index. An alteration that fails, or whose outcome is
// unknown, is abandoned. If it was complete, abandoning it changes nothing.
func (c *client) buildIndex(i int) error {
	b := &building{client: c, name: i, index: catalog.Index{Name: "x", Access: catalog.Access(c.rng.IntN(2))}}
	err := c.outcome(c.m.Run(ctx, b.begin))
	if err == nil && b.owner != 0 {
		err = b.copy()
	}
	if err == nil && b.owner != 0 {
		done := c.done
		err = c.transact(b.finish)
		c.result.Indexes += c.done - done // 1 if it has committed
	}
	if err = passes(err); err != nil || b.owner == 0 || c.process.Dead() {
		return err
	}
	return passes(c.outcome(c.catalog.AbandonAlteration(ctx, tableDB, tableName(i), b.owner)))
}

// begin marks the table as being altered, if it exists and is not being altered already.
func (b *building) begin(t *txn.Tx) error {
	b.owner = 0 // an earlier attempt of Run may have set it
	tbl, err := b.catalog.Table(t, tableDB, tableName(b.name))
	if err != nil {
		return unlessGone(err)
	}
	if b.index.Anchor, err = b.makeIndex(t); err != nil {
		return err
	}
	tbl, err = b.catalog.BeginAlteration(t, tbl, []catalog.Storage{{Access: b.index.Access, Anchor: b.index.Anchor}})
	if err == nil {
		b.owner = tbl.Alteration.Owner
	}
	return err
}

func (b *building) makeIndex(t *txn.Tx) (region.Ptr, error) {
	if b.index.Access == catalog.AccessHash {
		return hash.Create(t, hash.Config{KeyBytes: 8, ValueBytes: region.PtrBytes, Buckets: b.options.Buckets, Seed: b.options.Seed}, 0)
	}
	return btree.Create(t, btree.Config{LeafBytes: b.options.LeafBytes, InnerBytes: 600}, 0)
}

// altered returns the table that the building has marked.
func (b *building) altered(t *txn.Tx) (*catalog.Table, error) {
	tbl, err := b.catalog.Altered(t, tableDB, tableName(b.name), b.owner)
	return tbl, unlessGone(err)
}

// unlessGone replaces the error for a table that does not exist, or is being altered, by
// errUser.
func unlessGone(err error) error {
	if errors.Is(err, catalog.ErrNotFound) || errors.Is(err, catalog.ErrAltering) {
		return errUser
	}
	return err
}

// copy makes the entries of the index.
func (b *building) copy() error {
	for from := []byte{}; from != nil; {
		var next []byte
		err := b.outcome(b.m.Run(ctx, func(t *txn.Tx) (err error) {
			next, err = b.copySome(t, from)
			return err
		}))
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// copySome makes some entries, and returns the key of the next, nil after the last.
func (b *building) copySome(t *txn.Tx, from []byte) (next []byte, err error) {
	tbl, err := b.altered(t)
	if err != nil {
		return nil, err
	}
	cursor := b.catalog.Tree(tbl.Primary.Anchor).Scan(t, from, nil, false)
	for range entriesCopied {
		key, row, found, err := cursor.Next()
		if err != nil || !found {
			return nil, err
		}
		if err := b.addEntry(t, catalog.Storage{Access: b.index.Access, Anchor: b.index.Anchor}, key, row); err != nil {
			return nil, err
		}
		next = append(slices.Clone(key), 0) // the least key after this one
	}
	return next, nil
}

// finish puts the index to use, and removes the mark.
func (b *building) finish() error {
	tbl, err := b.altered(b.t)
	if err != nil {
		return err
	}
	if err := b.sawTable(b.name, tbl); err != nil {
		return err
	}
	next := tbl.Clone()
	next.Comment, next.Indexes, next.Alteration = b.comment(b.name), []catalog.Index{b.index}, catalog.Alteration{}
	if _, err := b.catalog.UpdateTable(b.t, next); err != nil {
		return err
	}
	var old []catalog.Storage
	for _, x := range tbl.Indexes {
		old = append(old, catalog.Storage{Access: x.Access, Anchor: x.Anchor})
	}
	return b.catalog.Drop(b.t, old)
}

// passes returns nil for an error that a client may get because of faults: nothing was done,
// or the outcome is in doubt. It returns other errors.
func passes(err error) error {
	if errors.Is(err, errUser) || errors.Is(err, errUnknown) {
		return nil
	}
	return err
}
