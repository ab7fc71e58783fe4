package catalog

import (
	"maps"
	"slices"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// After a table was dropped or renamed, its cached copy stays until its name is looked up again,
// and the handles of its indexes stay for ever if another machine frees the indexes. So the
// catalog checks all copies, or all handles, once there are twice as many as after the last check:
// checking them costs less than making them did.

// pruneLeast is the least number of copies, or of handles, at which the catalog checks them.
const pruneLeast = 256

// prune removes the cached copies of tables that were dropped, renamed or changed.
func (c *Catalog) prune(t *txn.Tx) {
	c.mu.RLock()
	gone := maps.Clone(c.mu.tables) // copies that turn out to be current are deleted below
	c.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(gone)) { // an order that a simulator can repeat
		tbl := gone[key]
		b, _, err := t.Peek(tbl.head) // Peek, not Read: the transaction must not depend on the head
		isCurrent := err == nil && tbl.isHead(b)
		isUnknown := err != nil && !IsFreed(err)
		if isCurrent || isUnknown {
			delete(gone, key)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, tbl := range gone {
		if c.mu.tables[key] == tbl {
			delete(c.mu.tables, key)
		}
	}
	c.mu.tablesMax = max(2*len(c.mu.tables), pruneLeast)
}

// pruneHandlesLocked drops the handles of indexes that belong to no cached table. A caller may
// still use a dropped handle: a new handle of the same index differs only in its cache.
func (c *Catalog) pruneHandlesLocked() {
	live := make(map[region.Ptr]bool)
	for _, tbl := range c.mu.tables { // any order
		for _, s := range tbl.Storage() {
			live[s.Anchor] = true
		}
	}
	maps.DeleteFunc(c.mu.trees, func(anchor region.Ptr, _ *btree.Tree) bool { return !live[anchor] })
	maps.DeleteFunc(c.mu.hashes, func(anchor region.Ptr, _ *hash.Table) bool { return !live[anchor] })
	c.mu.handlesMax = max(2*(len(c.mu.trees)+len(c.mu.hashes)), pruneLeast)
}

// Has reports whether the catalog has cached this copy of a table.
func (c *Catalog) Has(tbl *Table) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.tables[string(nameKey(nameTable, tbl.DB, tbl.Name))] == tbl
}
