package catalog

import (
	"bytes"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Triggers are listed in the directory by database, and only the text of a trigger says which table
// it belongs to. A transaction that changes a table reads the list, but depends only on the triggers
// of this table: it may commit whatever triggers other tables of the database get and lose meanwhile.
// The objects of triggers never change, so what a text says holds as long as the object lives.

// triggerTables caches which tables triggers belong to.
type triggerTables struct {
	lockrank.RWMutex[lockrank.Leaf]
	names map[region.Ptr]string
}

// triggerTablesMax is the number of cached triggers at which the cache is emptied.
const triggerTablesMax = 4096

func (tt *triggerTables) get(p region.Ptr) (name string, ok bool) {
	tt.RLock()
	defer tt.RUnlock()
	name, ok = tt.names[p]
	return name, ok
}

func (tt *triggerTables) put(p region.Ptr, name string) {
	tt.Lock()
	defer tt.Unlock()
	if tt.names == nil || len(tt.names) >= triggerTablesMax {
		tt.names = make(map[region.Ptr]string)
	}
	tt.names[p] = name
}

// anyTable stands for the table of a trigger whose text does not say it. No table has this name.
const anyTable = ""

// Triggers returns the triggers of a table, in the order of their names.
func (c *Catalog) Triggers(t *txn.Tx, db, table string) (triggers []*Definition, err error) {
	lo, hi := rangeUnder(nameKey(byte(Trigger), db))
	cur := c.names.Scan(t, lo, hi, false).Only(func(f *txn.Fresh, p region.Ptr) (bool, error) {
		return c.concernsLater(f, p, table)
	})
	for {
		_, p, ok, err := cur.Next()
		if err != nil || !ok {
			return triggers, err
		}
		d, err := c.triggerOf(t, p, table)
		if err != nil {
			return nil, err
		}
		if d != nil {
			triggers = append(triggers, d)
		}
	}
}

// triggerOf returns the trigger at p if it belongs to a table, otherwise nil. Only in the first case the
// transaction depends on the trigger.
func (c *Catalog) triggerOf(t *txn.Tx, p region.Ptr, table string) (*Definition, error) {
	if !c.Changed(t) { // Peek does not see the transaction's own changes
		concerns, err := c.concerns(p, table, func() ([]byte, error) {
			b, _, err := t.Peek(p)
			return b, err
		})
		if err != nil || !concerns {
			return nil, err
		}
	}
	d, err := c.definition(t, p)
	if err != nil || !isOfTable(c.tableOf(d), table) {
		return nil, err
	}
	return d, nil
}

// concernsLater reports whether the trigger at p belongs to a table, when a transaction is validated.
// A trigger that has been dropped since counts as a trigger of the table: this ends the transaction, at worst in vain.
func (c *Catalog) concernsLater(f *txn.Fresh, p region.Ptr, table string) (bool, error) {
	if sabotage.Triggers.Skipped() {
		return false, nil
	}
	concerns, err := c.concerns(p, table, func() ([]byte, error) {
		b, _, err := f.Peek(p)
		return b, err
	})
	if IsFreed(err) {
		return true, nil
	}
	return concerns, err
}

// concerns reports whether the trigger at p belongs to a table. peek returns the payload at p.
func (c *Catalog) concerns(p region.Ptr, table string, peek func() ([]byte, error)) (bool, error) {
	if name, ok := c.triggerTables.get(p); ok {
		return isOfTable(name, table), nil
	}
	payload, err := peek()
	if err != nil {
		return false, err
	}
	b, err := contents(payload)
	if err != nil {
		return false, err
	}
	d, err := DecodeDefinition(b)
	if err != nil {
		return false, err
	}
	name := c.tableOf(d)
	c.triggerTables.put(p, name)
	return isOfTable(name, table), nil
}

func (c *Catalog) tableOf(d *Definition) string {
	if c.triggerTable == nil {
		return anyTable
	}
	return c.triggerTable(d)
}

// isOfTable reports whether a trigger whose table is called name belongs to table. Names are equal if their keys are.
func isOfTable(name, table string) bool {
	return name == anyTable || bytes.Equal(nameKey(nameTable, name), nameKey(nameTable, table))
}
