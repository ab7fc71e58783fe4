package catalog

import (
	"errors"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/txn"
)

// A foreign key is stored in the child's descriptor. A reference to it is stored
// twice: in the parent's descriptor, for the statements that change the parent, and
// under a name of its own in the directory, for a parent that is created after its
// child.

func referenceKey(tbl *Table, f ForeignKey) []byte {
	return nameKey(nameForeign, f.ParentDB, f.ParentTable, tbl.DB, tbl.Name, f.Name)
}

// references lists the foreign keys that refer to a name.
func (c *Catalog) references(t *txn.Tx, db, name string) ([]Reference, error) {
	lo, hi := rangeUnder(nameKey(nameForeign, db, name))
	keys, _, err := c.list(t, lo, hi)
	if err != nil {
		return nil, err
	}
	refs := make([]Reference, 0, len(keys))
	for _, key := range keys {
		part := strings.Split(string(key[1:]), "\x00")
		if len(part) != 5 {
			return nil, ErrCorrupt
		}
		refs = append(refs, Reference{DB: part[2], Table: part[3], Name: part[4]})
	}
	return refs, nil
}

// AddForeignKey adds a constraint to a table.
func (c *Catalog) AddForeignKey(t *txn.Tx, tbl *Table, f ForeignKey) error {
	tbl = tbl.Clone()
	tbl.ForeignKeys = append(tbl.ForeignKeys, f)
	tbl, err := c.UpdateTable(t, tbl)
	if err != nil {
		return err
	}
	return c.rememberReference(t, tbl, f)
}

// DropForeignKey removes a constraint from a table.
func (c *Catalog) DropForeignKey(t *txn.Tx, tbl *Table, name string) error {
	i := tbl.ForeignKey(name)
	if i < 0 {
		return ErrNotFound
	}
	f := tbl.ForeignKeys[i]
	tbl = tbl.Clone()
	tbl.ForeignKeys = slices.Delete(tbl.ForeignKeys, i, i+1)
	tbl, err := c.UpdateTable(t, tbl)
	if err != nil {
		return err
	}
	return c.forgetReference(t, tbl, f)
}

func (c *Catalog) rememberReference(t *txn.Tx, tbl *Table, f ForeignKey) error {
	if err := c.insert(t, referenceKey(tbl, f), tbl.head); err != nil {
		return err
	}
	return c.editReferences(t, f, func(refs []Reference) []Reference {
		return append(refs, Reference{DB: tbl.DB, Table: tbl.Name, Name: f.Name})
	})
}

// forgetReference removes both records of a foreign key's reference: its name in the directory,
// and its entry in the parent's descriptor.
func (c *Catalog) forgetReference(t *txn.Tx, tbl *Table, f ForeignKey) error {
	if err := c.remove(t, referenceKey(tbl, f)); err != nil {
		return err
	}
	return c.editReferences(t, f, func(refs []Reference) []Reference {
		return slices.DeleteFunc(refs, func(r Reference) bool {
			return strings.EqualFold(r.DB, tbl.DB) && strings.EqualFold(r.Table, tbl.Name) && strings.EqualFold(r.Name, f.Name)
		})
	})
}

// editReferences changes the references in the parent's descriptor, if the parent exists.
func (c *Catalog) editReferences(t *txn.Tx, f ForeignKey, edit func([]Reference) []Reference) error {
	parent, err := c.Table(t, f.ParentDB, f.ParentTable)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	parent = parent.Clone()
	parent.ReferencedBy = edit(parent.ReferencedBy)
	_, err = c.UpdateTable(t, parent)
	return err
}

// repoint changes the foreign key that r names to refer to the parent's new database and name.
func (c *Catalog) repoint(t *txn.Tx, r Reference, old *Table, db, name string) error {
	child, err := c.Table(t, r.DB, r.Table)
	if err != nil {
		return err
	}
	if child.ID == old.ID {
		return nil // RenameTable moves a self-reference with the table
	}
	child = child.Clone()
	i := child.ForeignKey(r.Name)
	if i < 0 {
		return ErrCorrupt
	}
	f := &child.ForeignKeys[i]
	if err := c.remove(t, referenceKey(child, *f)); err != nil {
		return err
	}
	f.ParentDB, f.ParentTable = db, name
	if err := c.insert(t, referenceKey(child, *f), child.head); err != nil {
		return err
	}
	_, err = c.UpdateTable(t, child)
	return err
}
