package catalog

import "github.com/farmsql/farmsql/txn"

// Dropped returns how many entries are on the list of what was dropped.
func (c *Catalog) Dropped(t *txn.Tx) (int, error) {
	lo, hi := ofKind(nameDropped)
	keys, _, err := c.list(t, lo, hi)
	return len(keys), err
}
