package catalog

import (
	"maps"
	"slices"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A cached copy of a table that was dropped or renamed, by any machine, is noticed only when
// its name is looked up again; cached handles of its trees are never noticed. So the catalog
// checks all copies, or all handles, when there are twice as many as the last check left:
// checking costs a part of what making them cost.

// pruneLeast is how many there are at least when it does so.
const pruneLeast = 256

// prune forgets copies of tables that are gone.
func (c *Catalog) prune(t *txn.Tx) {
	c.mu.RLock()
	gone := maps.Clone(c.mu.tables)
	c.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(gone)) { // an order that a simulator can repeat
		tbl := gone[key]
		b, _, err := t.Peek(tbl.head) // not read: nothing depends on it
		if err == nil && tbl.isHead(b) || err != nil && !IsFreed(err) {
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

// pruneHandlesLocked drops the handles of indexes that no cached table has. Callers may keep
// such a handle; a new one differs only in what it has cached.
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

// Has says whether the catalog has kept this copy of a table for others.
func (c *Catalog) Has(tbl *Table) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.tables[string(nameKey(nameTable, tbl.DB, tbl.Name))] == tbl
}
