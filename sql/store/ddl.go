package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/txn"
)

// DDL returns the transaction in which a statement changes the catalog. Before, it
// commits the transaction that the client has open, as MySQL does.
func DDL(ctx *gms.Context) (*Transaction, error) {
	tr, s := Began(ctx), FromContext(ctx)
	if tr.ddl {
		return tr, nil
	}
	if err := tr.Writable(ctx, s.Store); err != nil {
		return nil, err
	}
	if s.Explicit() {
		if err := s.CommitTransaction(ctx, tr); err != nil {
			return nil, err
		}
		s.SetIgnoreAutoCommit(false)
		tr = s.NewTransaction(gms.ReadWrite)
		ctx.SetTransaction(tr)
	}
	tr.ddl = true
	return tr, nil
}

// columnText returns an expression in its stored form: without the name of the
// table, which may change.
func columnText(ctx *gms.Context, d *gms.ColumnDefaultValue) string {
	if d == nil {
		return ""
	}
	e, _, err := transform.Expr(ctx, d, func(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if l, ok := e.(*expression.Literal); ok && row.IsTimespan(l.Typ) && l.Val != nil {
			text, err := l.Typ.SQL(ctx, nil, l.Val) // go-mysql-server forgets the quotes
			return expression.NewLiteral(text.ToString(), types.Text), transform.NewTree, err
		}
		f, ok := e.(*expression.GetField)
		if !ok {
			return e, transform.SameTree, nil
		}
		bare := expression.NewGetField(f.Index(), f.Type(ctx), f.Name(), f.IsNullable(ctx))
		return bare.WithQuotedNames(gms.DefaultMySQLSchemaFormatter, f.IsQuotedIdentifier()), transform.NewTree, nil
	})
	if err != nil {
		return d.String()
	}
	return e.String()
}

// storedColumn describes a column for the catalog, in a slot.
func storedColumn(ctx *gms.Context, c *gms.Column, slot uint16) (catalog.Column, error) {
	d, err := row.Describe(c.Type)
	if err != nil {
		return catalog.Column{}, err
	}
	return catalog.Column{
		Name: c.Name, Comment: c.Comment, Extra: c.Extra, Type: d, Slot: slot,
		Default: columnText(ctx, c.Default), Generated: columnText(ctx, c.Generated), OnUpdate: columnText(ctx, c.OnUpdate),
		Nullable: c.Nullable && !c.PrimaryKey, AutoIncrement: c.AutoIncrement, Virtual: c.Virtual,
		Hidden: c.Hidden, HiddenSystem: c.HiddenSystem,
	}, nil
}

// SetSchema gives a table the columns and primary key of a schema. Every column gets a new slot,
// because the table has no rows in its present structures. key has the lengths of the primary key's
// prefixes; columns that it lacks are whole parts.
func SetSchema(ctx *gms.Context, t *catalog.Table, schema gms.PrimaryKeySchema, key []gms.IndexColumn) error {
	t.Columns, t.NextSlot = nil, 0
	if len(schema.PkOrdinals) == 0 { // the rows have hidden numbers
		t.NextSlot = row.NumberSlot + 1
	}
	for _, c := range schema.Schema {
		col, err := storedColumn(ctx, c, t.NextSlot)
		if err != nil {
			return err
		}
		if !c.Virtual {
			t.NextSlot++
		}
		t.Columns = append(t.Columns, col)
	}
	t.Primary = catalog.Index{Name: primaryName, Access: t.Primary.Access, Unique: true, Declared: len(schema.PkOrdinals) > 0}
	if !t.Primary.Declared {
		t.Primary.Access = catalog.AccessBTree
	}
	for _, at := range schema.PkOrdinals {
		p := catalog.Part{Column: uint16(at)}
		for _, k := range key {
			if SameName(k.Name, schema.Schema[at].Name) {
				p.Length = prefixLength(t.Columns[at].Type, k.Length)
			}
		}
		t.Primary.Parts = append(t.Primary.Parts, p)
	}
	return nil
}

// prefixLength returns the length of the prefix of a column that an index holds; 0
// if the prefix is the whole column.
func prefixLength(d catalog.Type, length int64) uint32 {
	switch d.Kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindBinary, catalog.KindVarbinary:
		if length == int64(d.Length) {
			return 0
		}
	}
	return uint32(length)
}

// renewStorage gives a table new, empty structures and new sequences.
func (st *Store) renewStorage(tr *Transaction, t *catalog.Table) error {
	for _, old := range []region.Ptr{t.Sequence, t.RowSequence} {
		if err := st.Catalog.FreeNumber(tr.Tx, old); err != nil {
			return err
		}
	}
	t.Sequence, t.RowSequence = region.Ptr{}, region.Ptr{}
	return st.CreateStorage(tr, t)
}

// CreateStorage creates what a table lacks: the structures of all of its indexes,
// and its sequences and counter.
func (st *Store) CreateStorage(tr *Transaction, t *catalog.Table) error {
	err := createAccesses(tr.Tx, t)
	if err != nil {
		return err
	}
	auto := slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return c.AutoIncrement })
	if err := tr.number(&t.Sequence, auto, 1); err != nil {
		return err
	}
	if err := tr.number(&t.RowSequence, !t.Primary.Declared, 1); err != nil {
		return err
	}
	if t.Counter.IsNil() {
		t.Counter, err = catalog.NewNumber(tr.Tx, 0)
	}
	return err
}

// number creates a sequence that begins at first, and stores its address in p. It does nothing if
// p has a sequence already, or if wanted is false.
func (tr *Transaction) number(p *region.Ptr, wanted bool, first uint64) error {
	if !wanted || !p.IsNil() {
		return nil
	}
	n, err := catalog.NewNumber(tr.Tx, first)
	if err != nil {
		return err
	}
	if tr.created == nil {
		tr.created = make(map[region.Ptr]bool)
	}
	tr.created[n], *p = true, n
	return nil
}

// createAccesses creates the structures of all of a table's indexes.
func createAccesses(tx *txn.Tx, t *catalog.Table) (err error) {
	if t.Primary.Anchor, err = CreateAccess(tx, t.Primary.Access); err != nil {
		return err
	}
	for i := range t.Indexes {
		if t.Indexes[i].Anchor, err = CreateAccess(tx, t.Indexes[i].Access); err != nil {
			return err
		}
	}
	return nil
}

// CreateAccess creates an empty structure for an index.
func CreateAccess(t *txn.Tx, a catalog.Access) (region.Ptr, error) {
	if a == catalog.AccessHash {
		return hash.Create(t, hash.Config{KeyBytes: 24, Seed: t.Machine().Clock().Uint64()}, 0)
	}
	return btree.Create(t, btree.Config{}, 0)
}

// change edits the table's descriptor.
func (t *Table) change(ctx *gms.Context, edit func(*Transaction, *catalog.Table) error) error {
	tr, err := DDL(ctx)
	if err != nil {
		return err
	}
	tbl, err := t.latest(ctx, tr)
	if err != nil {
		return tr.Fail(err)
	}
	tbl = tbl.Clone()
	if err := edit(tr, tbl); err != nil {
		return tr.Fail(err)
	}
	if tbl, err = t.Store.Catalog.UpdateTable(tr.Tx, tbl); err != nil {
		return tr.Fail(err)
	}
	return t.setDescriptor(ctx, tr, tbl)
}

// setDescriptor makes t a table with the given descriptor.
func (t *Table) setDescriptor(ctx *gms.Context, tr *Transaction, tbl *catalog.Table) error {
	info, err := t.Store.Info(ctx, tr, tbl)
	if err == nil {
		t.Info, t.schema = info, gms.PrimaryKeySchema{}
	}
	return err
}

// AddColumn implements gms.AlterableTable. Existing rows read as NULL in the new
// column.
func (t *Table) AddColumn(ctx *gms.Context, c *gms.Column, order *gms.ColumnOrder) error {
	return t.change(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		col, err := storedColumn(ctx, c, tbl.NextSlot)
		if err != nil {
			return err
		}
		if !c.Virtual {
			tbl.NextSlot++
		}
		tbl.Columns = append(tbl.Columns, col)
		moveColumn(tbl, len(tbl.Columns)-1, order)
		return nil
	})
}

// moveColumn moves the column at index old. Its new place is the one in order: first, or after
// another column. If order is nil, the column stays where it is.
func moveColumn(t *catalog.Table, old int, order *gms.ColumnOrder) {
	place := old
	switch {
	case order == nil:
	case order.First:
		place = 0
	default:
		place = t.Column(order.AfterColumn)
		if place < old {
			place++
		}
	}
	if place == old {
		return
	}
	c := t.Columns[old]
	t.Columns = slices.Insert(slices.Delete(slices.Clone(t.Columns), old, old+1), place, c)
	renumber(t, func(at int) int {
		switch {
		case at == old:
			return place
		case old < at && at <= place:
			return at - 1
		case place <= at && at < old:
			return at + 1
		}
		return at
	})
}

// renumber replaces the positions of columns in all indexes by those that newPosition returns for them.
func renumber(t *catalog.Table, newPosition func(int) int) {
	for _, x := range append([]*catalog.Index{&t.Primary}, pointers(t.Indexes)...) {
		for i := range x.Parts {
			x.Parts[i].Column = uint16(newPosition(int(x.Parts[i].Column)))
		}
	}
}

func pointers(x []catalog.Index) []*catalog.Index {
	p := make([]*catalog.Index, len(x))
	for i := range x {
		p[i] = &x[i]
	}
	return p
}

// DropColumn implements gms.AlterableTable. The values stay in the rows until the
// rows are next written.
func (t *Table) DropColumn(ctx *gms.Context, name string) error {
	return t.change(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		at := tbl.Column(name)
		if at < 0 {
			return gms.ErrTableColumnNotFound.New(tbl.Name, name)
		}
		if tbl.Columns[at].AutoIncrement {
			if err := t.Store.Catalog.FreeNumber(tr.Tx, tbl.Sequence); err != nil {
				return err
			}
			tbl.Sequence = region.Ptr{}
		}
		tbl.Columns = slices.Delete(tbl.Columns, at, at+1)
		renumber(tbl, func(c int) int {
			if c > at {
				return c - 1
			}
			return c
		})
		return nil
	})
}

// ModifyColumn implements gms.AlterableTable, for changes that leave the stored
// values as they are.
func (t *Table) ModifyColumn(ctx *gms.Context, name string, c *gms.Column, order *gms.ColumnOrder) error {
	return t.change(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		at := tbl.Column(name)
		if at < 0 {
			return gms.ErrTableColumnNotFound.New(tbl.Name, name)
		}
		old := tbl.Columns[at]
		c := *c
		c.PrimaryKey = slices.ContainsFunc(tbl.Primary.Parts, func(p catalog.Part) bool { return int(p.Column) == at })
		col, err := storedColumn(ctx, &c, old.Slot)
		if err != nil {
			return err
		}
		tbl.Columns[at] = col
		if err := t.modifySequence(ctx, tr, tbl, old, col); err != nil {
			return err
		}
		moveColumn(tbl, at, order)
		return nil
	})
}

// modifySequence creates the sequence of a column that has become AUTO_INCREMENT, or frees the
// sequence of one that no longer is.
func (t *Table) modifySequence(ctx *gms.Context, tr *Transaction, tbl *catalog.Table, old, col catalog.Column) error {
	switch {
	case old.AutoIncrement && !col.AutoIncrement:
		err := t.Store.Catalog.FreeNumber(tr.Tx, tbl.Sequence)
		tbl.Sequence = region.Ptr{}
		return err
	case !old.AutoIncrement && col.AutoIncrement:
		info, err := newInfo(ctx, tbl)
		if err != nil {
			return err
		}
		e := &Editor{Table: &Table{Store: t.Store, Info: info}, tr: tr}
		last, err := e.greatest(ctx)
		if err != nil {
			return err
		}
		return tr.number(&tbl.Sequence, true, last+1)
	}
	return nil
}

// CreateCheck implements gms.CheckAlterableTable.
func (t *Table) CreateCheck(ctx *gms.Context, c *gms.CheckDefinition) error {
	return t.change(ctx, func(_ *Transaction, tbl *catalog.Table) error {
		name := c.Name
		// A CHECK without a name gets the first one that is free.
		for i := 1; name == "" || (c.Name == "" && hasCheck(tbl, name)); i++ {
			name = fmt.Sprintf("%s_chk_%d", tbl.Name, i)
		}
		if hasCheck(tbl, name) {
			return myerr.CheckExists.New(name)
		}
		tbl.Checks = append(tbl.Checks, catalog.Check{Name: name, Expr: c.CheckExpression, Enforced: c.Enforced})
		return nil
	})
}

func hasCheck(t *catalog.Table, name string) bool {
	return slices.ContainsFunc(t.Checks, func(c catalog.Check) bool { return SameName(c.Name, name) })
}

// DropCheck implements gms.CheckAlterableTable.
func (t *Table) DropCheck(ctx *gms.Context, name string) error {
	return t.change(ctx, func(_ *Transaction, tbl *catalog.Table) error {
		n := len(tbl.Checks)
		tbl.Checks = slices.DeleteFunc(tbl.Checks, func(c catalog.Check) bool { return SameName(c.Name, name) })
		if len(tbl.Checks) == n {
			return gms.ErrUnknownConstraint.New(name)
		}
		return nil
	})
}

// ModifyComment implements gms.CommentAlterableTable.
func (t *Table) ModifyComment(ctx *gms.Context, comment string) error {
	return t.change(ctx, func(_ *Transaction, tbl *catalog.Table) error {
		tbl.Comment = comment
		return nil
	})
}

// ModifyDefaultCollation implements gms.CollationAlterableTable.
func (t *Table) ModifyDefaultCollation(ctx *gms.Context, c gms.CollationID) error {
	return t.change(ctx, func(_ *Transaction, tbl *catalog.Table) error {
		tbl.Collation = uint16(c)
		return nil
	})
}

// ModifyStoredCollation implements gms.CollationAlterableTable: every character
// column gets the collation, and the indexes over them are built again.
func (t *Table) ModifyStoredCollation(ctx *gms.Context, c gms.CollationID) error {
	schema := t.PrimaryKeySchema(ctx)
	columns := make(gms.Schema, len(schema.Schema))
	for i, old := range schema.Schema {
		col := *old
		if s, ok := col.Type.(gms.TypeWithCollation); ok && !isBinary(col.Type) {
			typ, err := s.WithNewCollation(c)
			if err != nil {
				return err
			}
			col.Type = typ
		}
		columns[i] = &col
	}
	if err := t.rewrite(ctx, gms.NewPrimaryKeySchema(columns, schema.PkOrdinals...)); err != nil {
		return err
	}
	return t.ModifyDefaultCollation(ctx, c)
}

func isBinary(t gms.Type) bool {
	s, ok := t.(gms.StringType)
	return ok && s.Collation() == gms.Collation_binary
}

// AddForeignKey implements gms.ForeignKeyTable.
func (t *Table) AddForeignKey(ctx *gms.Context, f gms.ForeignKeyConstraint) error {
	// go-mysql-server leaves it to its parser to refuse SET DEFAULT, and may be
	// given other parsers.
	if f.OnUpdate == gms.ForeignKeyReferentialAction_SetDefault || f.OnDelete == gms.ForeignKeyReferentialAction_SetDefault {
		return gms.ErrForeignKeySetDefault.New()
	}
	return t.editForeignKeys(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		// A foreign key's name is unique in the database, not only in the table.
		all, err := t.Store.Catalog.Tables(tr.Tx, tbl.DB)
		if err != nil {
			return err
		}
		for _, other := range all {
			if other.ForeignKey(f.Name) >= 0 {
				return gms.ErrForeignKeyDuplicateName.New(f.Name)
			}
		}
		return t.Store.Catalog.AddForeignKey(tr.Tx, tbl, storedForeignKey(f))
	})
}

// DropForeignKey implements gms.ForeignKeyTable.
func (t *Table) DropForeignKey(ctx *gms.Context, name, _, _ string) error {
	return t.editForeignKeys(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		err := t.Store.Catalog.DropForeignKey(tr.Tx, tbl, name)
		if errors.Is(err, catalog.ErrNotFound) {
			return gms.ErrForeignKeyNotFound.New(name, tbl.Name)
		}
		return err
	})
}

// UpdateForeignKey implements gms.ForeignKeyTable.
func (t *Table) UpdateForeignKey(ctx *gms.Context, name string, f gms.ForeignKeyConstraint) error {
	if err := t.DropForeignKey(ctx, name, "", ""); err != nil {
		return err
	}
	return t.AddForeignKey(ctx, f)
}

// editForeignKeys commits the client's open transaction, and lets edit change the latest descriptor
// of the table. The table then shows what edit has stored.
func (t *Table) editForeignKeys(ctx *gms.Context, edit func(*Transaction, *catalog.Table) error) error {
	tr, err := DDL(ctx)
	if err != nil {
		return err
	}
	tbl, err := t.latest(ctx, tr)
	if err != nil {
		return tr.Fail(err)
	}
	if err := edit(tr, tbl); err != nil {
		return tr.Fail(err)
	}
	if tbl, err = t.latest(ctx, tr); err != nil {
		return tr.Fail(err)
	}
	return t.setDescriptor(ctx, tr, tbl)
}

// CreateIndexForForeignKey implements gms.ForeignKeyTable.
func (t *Table) CreateIndexForForeignKey(ctx *gms.Context, d gms.IndexDef) error {
	return t.CreateIndex(ctx, d)
}

// RenameIndex implements gms.IndexAlterableTable.
func (t *Table) RenameIndex(ctx *gms.Context, from, to string) error {
	return t.change(ctx, func(_ *Transaction, tbl *catalog.Table) error {
		i := tbl.Index(from)
		if i < 0 {
			return gms.ErrIndexNotFound.New(from)
		}
		if j := tbl.Index(to); (j >= 0 && j != i) || SameName(to, primaryName) {
			return gms.ErrDuplicateKey.New(to)
		}
		tbl.Indexes[i].Name = to
		return nil
	})
}

// DropIndex implements gms.IndexAlterableTable.
func (t *Table) DropIndex(ctx *gms.Context, name string) error {
	if SameName(name, primaryName) {
		return t.DropPrimaryKey(ctx)
	}
	return t.change(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		i := tbl.Index(name)
		if i < 0 {
			return gms.ErrIndexNotFound.New(name)
		}
		x := tbl.Indexes[i]
		tbl.Indexes = slices.Delete(tbl.Indexes, i, i+1)
		return t.Store.Catalog.Drop(tr.Tx, []catalog.Storage{{Access: x.Access, Anchor: x.Anchor}})
	})
}

// storedIndex describes a new index for the catalog.
func storedIndex(tbl *catalog.Table, d gms.IndexDef) (catalog.Index, error) {
	x := catalog.Index{Name: d.Name, Comment: d.Comment, Declared: true, Unique: d.IsUnique(), Spatial: d.IsSpatial()}
	if d.IsFullText() || d.IsVector() {
		return x, gms.ErrUnsupportedFeature.New("FULLTEXT and VECTOR indexes")
	}
	// A hash table holds one row per key, so an index that is not unique becomes a
	// B-tree. InnoDB makes every index a B-tree.
	if d.Storage == gms.IndexUsing_Hash && x.Unique {
		x.Access = catalog.AccessHash
	}
	for _, c := range d.Columns {
		at := tbl.Column(c.Name)
		if at < 0 {
			return x, gms.ErrKeyColumnDoesNotExist.New(c.Name)
		}
		x.Parts = append(x.Parts, catalog.Part{Column: uint16(at), Length: prefixLength(tbl.Columns[at].Type, c.Length)})
	}
	if x.Name == "" {
		x.Name = freeIndexName(tbl, d.Columns[0].Name)
	}
	if tbl.Index(x.Name) >= 0 || SameName(x.Name, primaryName) {
		return x, gms.ErrDuplicateKey.New(x.Name)
	}
	return x, nil
}

// freeIndexName returns MySQL's name for an unnamed index: the name of its first column, followed
// by a number if an index has that name already.
func freeIndexName(tbl *catalog.Table, column string) string {
	name := column
	for i := 2; tbl.Index(name) >= 0 || strings.EqualFold(name, primaryName); i++ {
		name = fmt.Sprintf("%s_%d", column, i)
	}
	return name
}
