package store

import (
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/row"
)

// CreateIndex implements gms.IndexAlterableTable: it builds the index from the existing
// rows.
func (t *Table) CreateIndex(ctx *gms.Context, d gms.IndexDef) error {
	if t.Store.UsingHash(ctx)[ColumnList(d.ColumnNames())] {
		d.Storage = gms.IndexUsing_Hash
	}
	tr, err := DDL(ctx)
	if err != nil {
		return err
	}
	like, err := t.Store.LikeTable(ctx, tr)
	if err != nil {
		return tr.Fail(err)
	}
	if like != nil {
		if i := like.Index(d.Name); i >= 0 && like.Indexes[i].Access == catalog.AccessHash {
			d.Storage = gms.IndexUsing_Hash
		}
	}
	tbl, err := t.latest(ctx, tr)
	if err != nil {
		return tr.Fail(err)
	}
	if err := t.setDescriptor(ctx, tr, tbl); err != nil {
		return tr.Fail(err)
	}
	x, err := storedIndex(tbl, d)
	if err != nil {
		return tr.Fail(err)
	}
	if large, err := t.large(tr); err != nil || large {
		if err == nil {
			err = t.fillLarge(ctx, tr, x)
		}
		return tr.Fail(err)
	}
	return t.change(ctx, func(tr *Transaction, tbl *catalog.Table) error {
		if x.Anchor, err = CreateAccess(tr.Tx, x.Access); err != nil {
			return err
		}
		k, err := newKeyInfo(tbl, &x)
		if err != nil {
			return err
		}
		tbl.Indexes = append(tbl.Indexes, x)
		return t.fillIndex(ctx, tr, tbl, k)
	})
}

// fillIndex adds all rows to a new index.
func (t *Table) fillIndex(ctx *gms.Context, tr *Transaction, tbl *catalog.Table, k *KeyInfo) error {
	e, err := t.filler(tr, tbl)
	if err != nil {
		return err
	}
	cur := t.Store.Access(&t.Info.Table.Primary).Rows(tr.Tx, nil, nil, false, rowsTogether)
	for {
		key, p, ok, err := cur.Next()
		if err != nil || !ok {
			return err
		}
		if err := e.addEntry(ctx, k, slices.Clone(key), p); err != nil {
			return err
		}
	}
}

// filler returns an editor that adds entries to a new index; tbl is the table's
// descriptor with that index.
func (t *Table) filler(tr *Transaction, tbl *catalog.Table) (*Editor, error) {
	info, err := NewTableInfo(tbl)
	return &Editor{Table: &Table{Store: t.Store, Info: info}, tr: tr}, err
}

// addEntry adds the entry of the row at p to index k.
func (e *Editor) addEntry(ctx *gms.Context, k *KeyInfo, key []byte, p region.Ptr) error {
	r, err := row.Load(e.tr.Tx, e.Info.Rows, p, nil)
	if err != nil {
		return err
	}
	if r, err = e.withKeyColumns(ctx, r); err != nil {
		return err
	}
	return e.asDuplicate(ctx, e.insertEntry(ctx, k, r, key, p))
}

// ShouldBuildIndex implements gms.IndexBuildingTable.
func (t *Table) ShouldBuildIndex(*gms.Context, gms.IndexDef) (bool, error) { return false, nil }

// BuildIndex implements gms.IndexBuildingTable. go-mysql-server calls it after creating
// a unique index, which CreateIndex has already built; so the table then returns no rows
// for it.
func (t *Table) BuildIndex(ctx *gms.Context, d gms.IndexDef) (gms.RowInserter, error) {
	if t.Info.Key(d.Name) == nil {
		return nil, gms.ErrIndexNotFound.New(d.Name)
	}
	t.built = true
	return nothing{}, nil
}

// nothing is a RowInserter that ignores all rows.
type nothing struct{}

func (nothing) StatementBegin(*gms.Context)              {}
func (nothing) StatementComplete(*gms.Context) error     { return nil }
func (nothing) DiscardChanges(*gms.Context, error) error { return nil }
func (nothing) Insert(*gms.Context, gms.Row) error       { return nil }
func (nothing) Close(*gms.Context) error                 { return nil }

// CreatePrimaryKey implements gms.PrimaryKeyAlterableTable.
func (t *Table) CreatePrimaryKey(ctx *gms.Context, columns []gms.IndexColumn) error {
	schema := t.PrimaryKeySchema(ctx).Schema.Copy()
	ordinals := make([]int, len(columns))
	for i, c := range columns {
		at := t.Info.Column(c.Name)
		if at < 0 {
			return gms.ErrKeyColumnDoesNotExist.New(c.Name)
		}
		ordinals[i] = at
		schema[at].PrimaryKey, schema[at].Nullable = true, false
	}
	return t.rewrite(ctx, gms.NewPrimaryKeySchema(schema, ordinals...))
}

// DropPrimaryKey implements gms.PrimaryKeyAlterableTable.
func (t *Table) DropPrimaryKey(ctx *gms.Context) error {
	schema := t.PrimaryKeySchema(ctx).Schema.Copy()
	for _, c := range schema {
		c.PrimaryKey = false
	}
	return t.rewrite(ctx, gms.NewPrimaryKeySchema(schema))
}

// rewrite copies the table's rows, unchanged, into structures of another
// schema.
func (t *Table) rewrite(ctx *gms.Context, schema gms.PrimaryKeySchema) error {
	in, err := t.RewriteInserter(ctx, t.PrimaryKeySchema(ctx), schema, nil, nil, nil)
	if err != nil {
		return err
	}
	rows, err := t.PartitionRows(ctx, everything(t.Info.PrimaryKey))
	if err != nil {
		return err
	}
	for {
		row, err := rows.Next(ctx)
		if err == io.EOF {
			return in.Close(ctx)
		}
		if err == nil {
			err = in.Insert(ctx, row)
		}
		if err != nil {
			_ = in.DiscardChanges(ctx, err)
			_ = in.Close(ctx)
			return err
		}
	}
}

// ShouldRewriteTable implements gms.RewritableTable: rows keep their stored form when a
// column is added or dropped, or is changed without an effect on stored values.
func (t *Table) ShouldRewriteTable(ctx *gms.Context, _, _ gms.PrimaryKeySchema, old, col *gms.Column) bool {
	switch {
	case old == nil:
		return false
	case col == nil:
		return t.Indexed(t.Info.Column(old.Name))
	}
	oldForm, err := row.Describe(old.Type)
	if err != nil {
		return true
	}
	newForm, err := row.Describe(col.Type)
	isGenerated := old.Generated != nil || col.Generated != nil
	if err != nil || old.Virtual != col.Virtual || isGenerated {
		return true
	}
	return !sameForm(oldForm, newForm)
}

// Indexed reports whether a column is part of any index.
func (t *Table) Indexed(at int) bool {
	for _, x := range append([]*catalog.Index{&t.Info.Table.Primary}, pointers(t.Info.Table.Indexes)...) {
		if slices.ContainsFunc(x.Parts, func(p catalog.Part) bool { return int(p.Column) == at }) {
			return true
		}
	}
	return false
}

// sameForm reports whether every value of the type old is stored, in rows and in keys, in
// the same form as a value of the type changed.
func sameForm(old, changed catalog.Type) bool {
	switch old.Kind {
	case catalog.KindVarchar, catalog.KindVarbinary, catalog.KindText, catalog.KindBlob:
		return old.Kind == changed.Kind && old.Collation == changed.Collation && old.Length <= changed.Length
	case catalog.KindEnum, catalog.KindSet:
		return old.Kind == changed.Kind && old.Collation == changed.Collation && len(old.Values) <= len(changed.Values) &&
			slices.Equal(old.Values, changed.Values[:len(old.Values)])
	}
	return old.Kind == changed.Kind && old.Length == changed.Length && old.Precision == changed.Precision && old.Scale == changed.Scale &&
		old.Collation == changed.Collation && old.HasSRID == changed.HasSRID && old.SRID == changed.SRID
}

// A rewriter fills the new structures of a table whose rows take another form.
type rewriter struct {
	Editor
	old    *catalog.Table
	next   *catalog.Table
	target *Table
	failed bool
}

// RewriteInserter implements gms.RewritableTable. The table reads as before until the
// rewriter is closed.
func (t *Table) RewriteInserter(ctx *gms.Context, _, schema gms.PrimaryKeySchema, old, col *gms.Column, key []gms.IndexColumn) (gms.RowInserter, error) {
	tr, err := DDL(ctx)
	if err != nil {
		return nil, err
	}
	tbl, err := t.latest(ctx, tr)
	if err != nil {
		return nil, tr.Fail(err)
	}
	if isAdded := old == nil && col != nil; isAdded && col.PrimaryKey && tbl.Primary.Declared {
		return nil, gms.ErrMultiplePrimaryKeysDefined.New()
	}
	if err := t.setDescriptor(ctx, tr, tbl); err != nil {
		return nil, err
	}
	// go-mysql-server sets the position of a dropped column of the primary key to -1.
	// The remaining columns stay the key, as in MySQL.
	schema.PkOrdinals = slices.DeleteFunc(slices.Clone(schema.PkOrdinals), func(at int) bool { return at < 0 })
	// A dropped primary key may not leave an AUTO_INCREMENT column without an index, unless that
	// column is dropped, too.
	dropsKey := !t.Info.IsKeyless() && len(schema.PkOrdinals) == 0
	dropsAutoColumn := old != nil && col == nil && old.AutoIncrement
	if dropsKey && !dropsAutoColumn {
		if err := gms.ValidatePrimaryKeyDrop(ctx, t, t.PrimaryKeySchema(ctx)); err != nil {
			return nil, err
		}
	}
	next, err := rewrittenTable(ctx, tbl, schema, old, col, key)
	if err != nil {
		return nil, err
	}
	large, err := t.large(tr)
	if err != nil {
		return nil, tr.Fail(err)
	}
	if large {
		in, err := t.rewriteLarge(ctx, tr, next)
		return in, tr.Fail(err)
	}
	if err := t.Store.rewrittenNumbers(tr, tbl, next); err != nil {
		return nil, tr.Fail(err)
	}
	if err := t.Store.CreateStorage(tr, next); err != nil {
		return nil, tr.Fail(err)
	}
	info, err := newInfo(ctx, next)
	if err != nil {
		return nil, err
	}
	target := &Table{Store: t.Store, Info: info}
	w := &rewriter{old: tbl, next: next, target: t}
	w.Editor = Editor{Table: target, s: FromContext(ctx), tr: tr, acc: t.Store.Access(&next.Primary)}
	return w, nil
}

// rewrittenTable returns the descriptor of a table with another schema: its indexes
// follow their columns, even if those are renamed and moved. old is the column that the statement drops or
// changes, and col the one that it adds or that takes old's place; nil if there is none.
func rewrittenTable(ctx *gms.Context, tbl *catalog.Table, schema gms.PrimaryKeySchema, old, col *gms.Column, key []gms.IndexColumn) (*catalog.Table, error) {
	next := tbl.Clone()
	// A primary key that the statement does not change keeps the lengths of its prefixes.
	dropsColumn := old != nil && col == nil
	keepsKey := dropsColumn || len(schema.PkOrdinals) == len(tbl.Primary.Parts)
	if key == nil && next.Primary.Declared && keepsKey {
		for _, p := range tbl.Primary.Parts {
			key = append(key, gms.IndexColumn{Name: tbl.Columns[p.Column].Name, Length: int64(p.Length)})
		}
	}
	if err := SetSchema(ctx, next, schema, key); err != nil {
		return nil, err
	}
	kept := next.Indexes[:0]
	for _, x := range next.Indexes {
		parts := x.Parts[:0]
		for _, p := range x.Parts {
			name := tbl.Columns[p.Column].Name
			if old != nil && col != nil && SameName(name, old.Name) {
				name = col.Name
			}
			if at := next.Column(name); at >= 0 {
				parts = append(parts, catalog.Part{Column: uint16(at), Length: p.Length})
			}
		}
		x.Parts = parts
		if len(parts) > 0 {
			kept = append(kept, x)
		}
	}
	next.Indexes = kept
	return next, nil
}

// rewrittenNumbers frees the sequences that a rewritten table no longer needs, and keeps
// the others.
func (st *Store) rewrittenNumbers(tr *Transaction, tbl, next *catalog.Table) error {
	auto := slices.ContainsFunc(next.Columns, func(c catalog.Column) bool { return c.AutoIncrement })
	if !auto {
		if err := st.Catalog.FreeNumber(tr.Tx, tbl.Sequence); err != nil {
			return err
		}
		next.Sequence = region.Ptr{}
	}
	if next.Primary.Declared {
		if err := st.Catalog.FreeNumber(tr.Tx, tbl.RowSequence); err != nil {
			return err
		}
		next.RowSequence = region.Ptr{}
	}
	return nil
}

// Insert implements gms.RowInserter.
func (w *rewriter) Insert(ctx *gms.Context, row gms.Row) error {
	return w.atomically(ctx, func() error {
		if err := w.insert(ctx, row); err != nil {
			return w.asDuplicate(ctx, err)
		}
		return w.raise(ctx, row)
	})
}

// StatementBegin implements gms.EditOpenerCloser.
func (w *rewriter) StatementBegin(*gms.Context) {}

// StatementComplete implements gms.EditOpenerCloser.
func (w *rewriter) StatementComplete(*gms.Context) error { return nil }

// DiscardChanges implements gms.EditOpenerCloser. The statement fails, and marks its
// transaction as broken.
func (w *rewriter) DiscardChanges(*gms.Context, error) error {
	w.failed, w.tr.broken = true, true
	return nil
}

// Close implements gms.Closer: the new structures take the place of the old.
func (w *rewriter) Close(ctx *gms.Context) error {
	if w.failed {
		return nil
	}
	tbl, err := w.Store.Catalog.UpdateTable(w.tr.Tx, w.next)
	if err != nil {
		return w.tr.Fail(err)
	}
	if err := w.Store.Catalog.Drop(w.tr.Tx, w.old.Storage()); err != nil {
		return w.tr.Fail(err)
	}
	return w.target.setDescriptor(ctx, w.tr, tbl)
}
