package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Table returns a table's descriptor and puts the table's head into the transaction's
// read set. It returns ErrNotFound if there is no table of that name; the transaction then
// cannot commit if one appears. It returns ErrAltering if the table is being altered; the
// transaction then does not depend on the table, and can wait.
func (c *Catalog) Table(t *txn.Tx, db, name string) (*Table, error) {
	return c.table(t, db, name, 0)
}

// Altered is like Table, but also returns a table that owner is altering.
func (c *Catalog) Altered(t *txn.Tx, db, name string, owner uint64) (*Table, error) {
	return c.table(t, db, name, owner)
}

// table returns a table, from the cache if the transaction has not changed the catalog. It returns
// ErrAltering if another owner is altering the table.
func (c *Catalog) table(t *txn.Tx, db, name string, owner uint64) (*Table, error) {
	key := nameKey(nameTable, db, name)
	if !c.Changed(t) {
		if tbl, err := c.cached(t, string(key), owner); tbl != nil || err != nil {
			return tbl, err
		}
	}
	head, ok, err := c.names.Get(t, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	// Peek first: a Read would make the transaction depend on a table that is being altered.
	b, _, err := t.Peek(head)
	switch {
	case err == nil && !isHeadOpen(b, owner):
		return nil, ErrAltering
	case err != nil && !IsFreed(err) && !c.Changed(t): // Peek does not see the transaction's own changes
		return nil, err
	}
	tbl, err := c.load(t, string(key), head)
	if err == nil && !tbl.isOpen(owner) {
		return nil, fmt.Errorf("catalog: table %s.%s is being altered since it was looked at: %w", db, name, outcome.ErrConflict)
	}
	return tbl, err
}

// isOpen reports whether caller, the owner of an alteration or 0, may use the table.
func (tbl *Table) isOpen(caller uint64) bool { return isOpen(tbl.Alteration.Owner, caller) }

// isOpen reports whether caller may use a table that owner is altering (0: nobody is).
func isOpen(owner, caller uint64) bool {
	return owner == 0 || owner == caller || sabotage.Mark.Skipped()
}

// isHeadOpen is like isOpen, for a table with this head.
func isHeadOpen(head []byte, caller uint64) bool {
	if len(head) < headBytes {
		return true // load then returns ErrCorrupt
	}
	return isOpen(binary.LittleEndian.Uint64(head[16:]), caller)
}

// anyOwner makes cached return a table even if it is being altered.
const anyOwner = ^uint64(0)

// cached returns the machine's copy of a table if the copy is still valid, otherwise nil.
// The head shows that: every change writes it, a drop or rename frees it. cached returns ErrAltering if
// the head says that another owner is altering the table.
func (c *Catalog) cached(t *txn.Tx, key string, owner uint64) (*Table, error) {
	c.mu.RLock()
	tbl := c.mu.tables[key]
	c.mu.RUnlock()
	if tbl == nil || sabotage.Descriptor.Skipped() {
		return tbl, nil
	}
	// Peek first: after a Read of a freed head, the transaction would have to abort.
	b, _, err := t.Peek(tbl.head)
	if err == nil && tbl.isHead(b) {
		if owner != anyOwner && !isHeadOpen(b, owner) {
			return nil, ErrAltering
		}
		if b, err = t.Read(tbl.head); err != nil {
			return nil, err
		}
		if tbl.isHead(b) {
			return tbl, nil
		}
	}
	if err != nil && !IsFreed(err) {
		return nil, err
	}
	c.mu.Lock()
	if c.mu.tables[key] == tbl {
		delete(c.mu.tables, key)
	}
	c.mu.Unlock()
	return nil, nil
}

// IsFreed reports whether err says that a pointer led to freed memory.
func IsFreed(err error) bool {
	var a *txn.AbortError
	return errors.Is(err, region.ErrFreed) || (errors.As(err, &a) && a.Reason == txn.ReasonFreed)
}

// isHead reports whether b is a head that names this generation of the table.
func (tbl *Table) isHead(b []byte) bool {
	return len(b) >= headBytes && binary.LittleEndian.Uint64(b) == tbl.ID && binary.LittleEndian.Uint64(b[8:]) == tbl.Generation
}

// load reads and decodes the table with this head, and caches it unless the transaction has
// changed the catalog.
func (c *Catalog) load(t *txn.Tx, key string, head region.Ptr) (*Table, error) {
	b, err := t.Read(head)
	if err != nil {
		return nil, err
	}
	if len(b) < headBytes {
		return nil, ErrCorrupt
	}
	body, err := region.DecodePtr(b[24:])
	if err != nil {
		return nil, err
	}
	if b, err = get(t, body); err != nil {
		return nil, err
	}
	tbl, err := DecodeTable(b)
	if err != nil {
		return nil, err
	}
	tbl.head, tbl.body = head, body
	if !c.Changed(t) {
		c.mu.Lock()
		c.mu.tables[key] = tbl
		tooMany := len(c.mu.tables) > c.mu.tablesMax
		c.mu.Unlock()
		if tooMany {
			c.prune(t)
		}
	}
	return tbl, nil
}

// Current reports whether tbl is the descriptor that the transaction sees, and puts the
// table's head into the read set.
func (c *Catalog) Current(t *txn.Tx, tbl *Table) (bool, error) {
	b, err := t.Read(tbl.head)
	if err != nil {
		return false, err
	}
	return tbl.isHead(b), nil
}

// Tables returns all tables of a database, including tables that are being altered.
func (c *Catalog) Tables(t *txn.Tx, db string) ([]*Table, error) {
	lo, hi := rangeUnder(nameKey(nameTable, db))
	keys, heads, err := c.list(t, lo, hi)
	if err != nil {
		return nil, err
	}
	tables := make([]*Table, len(heads))
	for i, head := range heads {
		if !c.Changed(t) {
			if tables[i], err = c.cached(t, string(keys[i]), anyOwner); err != nil {
				return nil, err
			}
		}
		if tables[i] == nil {
			if tables[i], err = c.load(t, string(keys[i]), head); err != nil {
				return nil, err
			}
		}
	}
	return tables, nil
}

// CreateTable stores a new table with a new ID. Foreign keys that refer to a table of
// this name, which did not exist until now, then refer to the new table.
func (c *Catalog) CreateTable(t *txn.Tx, tbl *Table) (*Table, error) {
	tbl = tbl.Clone()
	tbl.ID, tbl.Generation = c.m.Clock().Uint64(), 1
	refs, err := c.references(t, tbl.DB, tbl.Name)
	if err != nil {
		return nil, err
	}
	tbl.ReferencedBy = refs
	head, payload, err := t.Alloc(headBytes, 0)
	if err != nil {
		return nil, err
	}
	if tbl.body, err = put(t, region.Ptr{}, EncodeTable(tbl)); err != nil {
		return nil, err
	}
	tbl.head = head
	tbl.putHead(payload)
	if err := c.insert(t, nameKey(nameTable, tbl.DB, tbl.Name), head); err != nil {
		return nil, err
	}
	return tbl, nil
}

func (tbl *Table) putHead(payload []byte) {
	binary.LittleEndian.PutUint64(payload, tbl.ID)
	binary.LittleEndian.PutUint64(payload[8:], tbl.Generation)
	binary.LittleEndian.PutUint64(payload[16:], tbl.Alteration.Owner)
	copy(payload[24:], tbl.body.Append(nil))
}

// UpdateTable replaces a table's descriptor by tbl. tbl must be a changed Clone of the descriptor
// that the transaction sees, with the same name.
func (c *Catalog) UpdateTable(t *txn.Tx, tbl *Table) (*Table, error) {
	tbl = tbl.Clone()
	tbl.Generation++
	c.change(t)
	body, err := put(t, tbl.body, EncodeTable(tbl))
	if err != nil {
		return nil, err
	}
	tbl.body = body
	payload, err := t.Write(tbl.head)
	if err != nil {
		return nil, err
	}
	tbl.putHead(payload)
	return tbl, nil
}

// DropTable removes a table from the catalog and lists its storage to be freed.
func (c *Catalog) DropTable(t *txn.Tx, tbl *Table) error {
	t.ToFree()
	for _, f := range tbl.ForeignKeys {
		if err := c.forgetReference(t, tbl, f); err != nil {
			return err
		}
	}
	if err := c.removeTable(t, tbl); err != nil {
		return err
	}
	for _, p := range []region.Ptr{tbl.Sequence, tbl.RowSequence, tbl.Counter} {
		if err := c.FreeNumber(t, p); err != nil {
			return err
		}
	}
	return c.Drop(t, append(tbl.Storage(), tbl.Alteration.Build...))
}

// removeTable removes a table's name, and frees its descriptor.
func (c *Catalog) removeTable(t *txn.Tx, tbl *Table) error {
	if err := c.remove(t, nameKey(nameTable, tbl.DB, tbl.Name)); err != nil {
		return err
	}
	if err := t.Free(tbl.body); err != nil {
		return err
	}
	return t.Free(tbl.head)
}

// RenameTable gives a table another name and database. It updates the table's foreign keys, and
// foreign keys that refer to the table.
func (c *Catalog) RenameTable(t *txn.Tx, tbl *Table, db, name string) (*Table, error) {
	old := tbl
	for _, f := range old.ForeignKeys {
		if err := c.forgetReference(t, old, f); err != nil {
			return nil, err
		}
	}
	// Read again: a self-reference has just changed the descriptor.
	old, err := c.Table(t, tbl.DB, tbl.Name)
	if err != nil {
		return nil, err
	}
	tbl = old.Clone()
	tbl.DB, tbl.Name = db, name
	tbl.ForeignKeys = slices.Clone(tbl.ForeignKeys)
	for i := range tbl.ForeignKeys {
		if f := &tbl.ForeignKeys[i]; strings.EqualFold(f.ParentDB, old.DB) && strings.EqualFold(f.ParentTable, old.Name) {
			f.ParentDB, f.ParentTable = db, name
		}
	}
	for _, r := range old.ReferencedBy {
		if err := c.repoint(t, r, old, db, name); err != nil {
			return nil, err
		}
	}
	if err := c.remove(t, nameKey(nameTable, old.DB, old.Name)); err != nil {
		return nil, err
	}
	// Allocate a new head: machines that have cached the old name find the old head freed.
	if err := t.Free(old.head); err != nil {
		return nil, err
	}
	head, payload, err := t.Alloc(headBytes, 0)
	if err != nil {
		return nil, err
	}
	tbl.head = head
	tbl.Generation++
	if tbl.ReferencedBy, err = c.references(t, db, name); err != nil {
		return nil, err
	}
	if tbl.body, err = put(t, tbl.body, EncodeTable(tbl)); err != nil {
		return nil, err
	}
	tbl.putHead(payload)
	if err := c.insert(t, nameKey(nameTable, db, name), head); err != nil {
		return nil, err
	}
	for _, f := range tbl.ForeignKeys {
		if err := c.rememberReference(t, tbl, f); err != nil {
			return nil, err
		}
	}
	return c.Table(t, db, name)
}
