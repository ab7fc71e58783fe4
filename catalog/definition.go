package catalog

import (
	"bytes"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Database returns a database, or ErrNotFound.
func (c *Catalog) Database(t *txn.Tx, name string) (*Database, error) {
	p, ok, err := c.names.Get(t, nameKey(nameDatabase, name))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	return c.database(t, p)
}

func (c *Catalog) database(t *txn.Tx, p region.Ptr) (*Database, error) {
	b, err := get(t, p)
	if err != nil {
		return nil, err
	}
	db, err := DecodeDatabase(b)
	if err == nil {
		db.ptr = p
	}
	return db, err
}

// DatabaseName returns a database's name as it was created, or ErrNotFound. The transaction then depends
// on whether the database exists, and not on its other properties: they concern only statements that
// make tables.
func (c *Catalog) DatabaseName(t *txn.Tx, name string) (string, error) {
	key := nameKey(nameDatabase, name)
	_, p, ok, err := c.names.Scan(t, key, append(bytes.Clone(key), 0), false).KeysOnly().Next()
	if err != nil {
		return "", err
	}
	if !ok {
		return "", ErrNotFound
	}
	if !c.Changed(t) { // Peek does not see the transaction's own changes
		db, err := peekDatabase(t, p)
		if err == nil {
			return db.Name, nil
		}
		if !IsFreed(err) {
			return "", err
		}
		// The database was changed or dropped since the scan: read it as a part of the transaction.
	}
	db, err := c.Database(t, name)
	if err != nil {
		return "", err
	}
	return db.Name, nil
}

func peekDatabase(t *txn.Tx, p region.Ptr) (*Database, error) {
	payload, _, err := t.Peek(p)
	if err != nil {
		return nil, err
	}
	b, err := contents(payload)
	if err != nil {
		return nil, err
	}
	return DecodeDatabase(b)
}

// Databases returns all databases in the order of their names.
func (c *Catalog) Databases(t *txn.Tx) ([]*Database, error) {
	_, ptrs, err := c.list(t, []byte{nameDatabase}, []byte{nameDatabase + 1})
	if err != nil {
		return nil, err
	}
	dbs := make([]*Database, len(ptrs))
	for i, p := range ptrs {
		if dbs[i], err = c.database(t, p); err != nil {
			return nil, err
		}
	}
	return dbs, nil
}

// CreateDatabase stores a new database.
func (c *Catalog) CreateDatabase(t *txn.Tx, db *Database) error {
	p, err := put(t, region.Ptr{}, EncodeDatabase(db))
	if err != nil {
		return err
	}
	return c.insert(t, nameKey(nameDatabase, db.Name), p)
}

// UpdateDatabase stores a changed database; db must be the one that Database returned.
func (c *Catalog) UpdateDatabase(t *txn.Tx, db *Database) error {
	p, err := put(t, db.ptr, EncodeDatabase(db))
	if err != nil {
		return err
	}
	_, err = c.rewire(t, nameKey(nameDatabase, db.Name), db.ptr, p)
	return err
}

// DropDatabase removes a database with all its tables and definitions.
func (c *Catalog) DropDatabase(t *txn.Tx, name string) error {
	t.ToFree()
	db, err := c.Database(t, name)
	if err != nil {
		return err
	}
	tables, err := c.Tables(t, name)
	if err != nil {
		return err
	}
	for _, tbl := range tables {
		// Read again: dropping the previous table may have removed a reference from this one.
		if tbl, err = c.Table(t, tbl.DB, tbl.Name); err != nil {
			return err
		}
		if err = c.DropTable(t, tbl); err != nil {
			return err
		}
	}
	for _, kind := range []Definer{View, Trigger, Procedure, Event} {
		defs, err := c.Definitions(t, kind, name)
		if err != nil {
			return err
		}
		for _, d := range defs {
			if err := c.DropDefinition(t, kind, name, d.Name); err != nil {
				return err
			}
		}
	}
	if err := t.Free(db.ptr); err != nil {
		return err
	}
	return c.remove(t, nameKey(nameDatabase, name))
}

// rewire makes a key of the directory point to p instead of old, and returns p. If both are the
// same object, it only notes the change of the catalog.
func (c *Catalog) rewire(t *txn.Tx, key []byte, old, p region.Ptr) (region.Ptr, error) {
	c.change(t)
	if p == old {
		return p, nil
	}
	return p, c.names.Put(t, key, p)
}

// Definition returns one definition, or ErrNotFound.
func (c *Catalog) Definition(t *txn.Tx, kind Definer, db, name string) (*Definition, error) {
	p, ok, err := c.names.Get(t, nameKey(byte(kind), db, name))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	return c.definition(t, p)
}

func (c *Catalog) definition(t *txn.Tx, p region.Ptr) (*Definition, error) {
	b, err := get(t, p)
	if err != nil {
		return nil, err
	}
	d, err := DecodeDefinition(b)
	if err == nil {
		d.ptr = p
	}
	return d, err
}

// Definitions returns all definitions of a kind in a database, in the order of their names.
func (c *Catalog) Definitions(t *txn.Tx, kind Definer, db string) ([]*Definition, error) {
	lo, hi := rangeUnder(nameKey(byte(kind), db))
	_, ptrs, err := c.list(t, lo, hi)
	if err != nil {
		return nil, err
	}
	defs := make([]*Definition, len(ptrs))
	for i, p := range ptrs {
		if defs[i], err = c.definition(t, p); err != nil {
			return nil, err
		}
	}
	return defs, nil
}

// CreateDefinition stores a new definition.
func (c *Catalog) CreateDefinition(t *txn.Tx, kind Definer, db string, d *Definition) error {
	p, err := put(t, region.Ptr{}, EncodeDefinition(d))
	if err != nil {
		return err
	}
	return c.insert(t, nameKey(byte(kind), db, d.Name), p)
}

// UpdateDefinition replaces a definition.
func (c *Catalog) UpdateDefinition(t *txn.Tx, kind Definer, db string, d *Definition) error {
	old, err := c.Definition(t, kind, db, d.Name)
	if err != nil {
		return err
	}
	p, err := put(t, old.ptr, EncodeDefinition(d))
	if err != nil {
		return err
	}
	_, err = c.rewire(t, nameKey(byte(kind), db, d.Name), old.ptr, p)
	return err
}

// DropDefinition removes a definition.
func (c *Catalog) DropDefinition(t *txn.Tx, kind Definer, db, name string) error {
	d, err := c.Definition(t, kind, db, name)
	if err != nil {
		return err
	}
	t.ToFree()
	if err := t.Free(d.ptr); err != nil {
		return err
	}
	return c.remove(t, nameKey(byte(kind), db, name))
}

// Setting returns the bytes that PutSetting stored under a name, or nil if there are
// none.
func (c *Catalog) Setting(t *txn.Tx, name string) ([]byte, error) {
	p, ok, err := c.names.Get(t, nameKey(nameSetting, name))
	if err != nil || !ok {
		return nil, err
	}
	return get(t, p)
}

// PutSetting stores bytes under a name.
func (c *Catalog) PutSetting(t *txn.Tx, name string, b []byte) error {
	return c.keep(t, nameKey(nameSetting, name), b)
}

// keep stores bytes in the object that a key of the directory points to. It adds the key if it is
// missing.
func (c *Catalog) keep(t *txn.Tx, key, b []byte) error {
	old, ok, err := c.names.Get(t, key)
	if err != nil {
		return err
	}
	p, err := put(t, old, b)
	if err != nil {
		return err
	}
	if !ok {
		return c.insert(t, key, p)
	}
	_, err = c.rewire(t, key, old, p)
	return err
}
