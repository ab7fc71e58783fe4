package catalog

import "github.com/farmsql/farmsql/txn"

// Dropped returns how many entries are on the list of what was dropped.
func (c *Catalog) Dropped(t *txn.Tx) (int, error) {
	lo, hi := ofKind(nameDropped)
	keys, _, err := c.list(t, lo, hi)
	return len(keys), err
}

// ForgetTriggers empties the cache of which tables triggers belong to.
func (c *Catalog) ForgetTriggers() {
	c.triggerTables.Lock()
	defer c.triggerTables.Unlock()
	c.triggerTables.names = nil
}

// TriggerTablesMax is the number of triggers that the cache holds at most.
const TriggerTablesMax = triggerTablesMax

// CachedTriggers returns the number of triggers of which the table is cached.
func (c *Catalog) CachedTriggers() int {
	c.triggerTables.RLock()
	defer c.triggerTables.RUnlock()
	return len(c.triggerTables.names)
}
