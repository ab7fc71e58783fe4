package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.Table                    = (*Table)(nil)
	_ gms.Databaseable             = (*Table)(nil)
	_ gms.CommentedTable           = (*Table)(nil)
	_ gms.TemporaryTable           = (*Table)(nil)
	_ gms.PrimaryKeyTable          = (*Table)(nil)
	_ gms.ProjectedTable           = (*Table)(nil)
	_ gms.IndexAddressableTable    = (*Table)(nil)
	_ gms.IndexedTable             = (*IndexedTable)(nil)
	_ gms.ReferenceChecker         = (*IndexedTable)(nil)
	_ gms.InsertableTable          = (*Table)(nil)
	_ gms.UpdatableTable           = (*Table)(nil)
	_ gms.DeletableTable           = (*Table)(nil)
	_ gms.ReplaceableTable         = (*Table)(nil)
	_ gms.TruncateableTable        = (*Table)(nil)
	_ gms.AutoIncrementTable       = (*Table)(nil)
	_ gms.StatisticsTable          = (*Table)(nil)
	_ gms.ForeignKeyTable          = (*Table)(nil)
	_ gms.CheckAlterableTable      = (*Table)(nil)
	_ gms.CheckTable               = (*Table)(nil)
	_ gms.AlterableTable           = (*Table)(nil)
	_ compat.ListTable             = (*Table)(nil)
	_ compat.ExactTable            = (*Table)(nil)
	_ compat.ExactTable            = (*IndexedTable)(nil)
	_ gms.RewritableTable          = (*Table)(nil)
	_ gms.IndexAlterableTable      = (*Table)(nil)
	_ gms.IndexBuildingTable       = (*Table)(nil)
	_ gms.PrimaryKeyAlterableTable = (*Table)(nil)
	_ gms.CollationAlterableTable  = (*Table)(nil)
	_ gms.CommentAlterableTable    = (*Table)(nil)
)

// A Table is one table as a statement sees it: a descriptor, and the columns that the statement
// reads.
type Table struct {
	// Store is the machine's, and Info the descriptor that the statement was planned with.
	Store *Store
	Info  *TableInfo
	// schema is this statement's own copy: go-mysql-server writes to it.
	schema gms.PrimaryKeySchema
	// Columns are the positions of the projected columns, nil for all.
	Columns    []int
	projection []string
	projected  gms.Schema
	// Sparse are the columns whose values the rows of a Scan have; nil for all. The rows have all columns nevertheless: those that
	// are not in Sparse are NULL. It is not used together with Columns.
	Sparse []int
	// built is set if an index has already been built: go-mysql-server then reads no rows to build
	// it.
	built bool
	// exact is set if the schema's strings compare by their bytes.
	exact bool
	// frozen is the running alteration of the table.
	frozen *Bulk
}

// Name implements gms.Nameable.
func (t *Table) Name() string { return t.Info.Name }

// String implements fmt.Stringer.
func (t *Table) String() string { return t.Info.Name }

// Database implements gms.Databaseable.
func (t *Table) Database() string { return t.Info.DB }

// Schema implements gms.Table.
func (t *Table) Schema(*gms.Context) gms.Schema {
	schema := t.projected
	if t.Columns == nil {
		schema = t.ownSchema().Schema
	}
	if t.exact {
		return compat.ExactSchema(schema)
	}
	return schema
}

// ShowExact implements compat.ExactTable: the table's schema then compares strings by their bytes.
func (t *Table) ShowExact() { t.exact = true }

// ownSchema returns the table's copy of the schema, and makes it on the first call.
func (t *Table) ownSchema() gms.PrimaryKeySchema {
	if t.schema.Schema == nil {
		t.schema = t.Info.Schema
		t.schema.Schema = t.Info.Schema.Schema.Copy()
	}
	return t.schema
}

// PrimaryKeySchema implements gms.PrimaryKeyTable.
func (t *Table) PrimaryKeySchema(*gms.Context) gms.PrimaryKeySchema { return t.ownSchema() }

// Collation implements gms.Table.
func (t *Table) Collation() gms.CollationID { return gms.CollationID(t.Info.Table.Collation) }

// Comment implements gms.CommentedTable.
func (t *Table) Comment() string { return t.Info.Table.Comment }

// IsTemporary implements gms.TemporaryTable. go-mysql-server asks when a READ ONLY transaction
// tries to change a table.
func (t *Table) IsTemporary() bool { return false }

// WithProjections implements gms.ProjectedTable.
func (t *Table) WithProjections(_ *gms.Context, names []string) (gms.Table, error) {
	c := *t
	c.Columns, c.projection, c.projected = nil, nil, nil
	if names == nil {
		return &c, nil
	}
	c.Columns, c.projection, c.projected = make([]int, len(names)), names, make(gms.Schema, len(names))
	schema := t.ownSchema().Schema
	for i, name := range names {
		at := t.Info.Column(name)
		if at < 0 {
			return nil, gms.ErrTableColumnNotFound.New(t.Name(), name)
		}
		c.Columns[i], c.projected[i] = at, schema[at]
	}
	return &c, nil
}

// Projections implements gms.ProjectedTable.
func (t *Table) Projections() []string { return t.projection }

// join makes the transaction depend on the table's descriptor. The statement must have been planned with this
// descriptor; since then only the statement itself may have changed it.
func (t *Table) join(ctx *gms.Context, tr *Transaction) error {
	if err := t.refresh(ctx); err != nil {
		return err
	}
	ok, err := t.Store.Catalog.Current(tr.Tx, t.Info.Table)
	if err == nil && !ok {
		err = myerr.TableChanged.New()
	}
	return err
}

// refresh updates the table after an earlier clause of the same statement has changed it.
func (t *Table) refresh(ctx *gms.Context) error {
	tr := Current(ctx)
	if tr == nil || !t.Store.Catalog.Changed(tr.Tx) {
		return nil
	}
	tbl, err := t.latest(ctx, tr)
	if err != nil || tbl == t.Info.Table {
		return err
	}
	if err := t.setDescriptor(ctx, tr, tbl); err != nil || t.Columns == nil {
		return err
	}
	p, err := t.WithProjections(ctx, t.projection)
	if err == nil {
		*t = *p.(*Table)
	}
	return err
}

// Partitions implements gms.Table.
func (t *Table) Partitions(ctx *gms.Context) (gms.PartitionIter, error) {
	if t.built {
		return &onePartition{}, nil
	}
	if err := t.refresh(ctx); err != nil {
		return nil, myerr.Storage(err)
	}
	return &onePartition{everything(t.Info.PrimaryKey)}, nil
}

// PartitionRows implements gms.Table.
func (t *Table) PartitionRows(ctx *gms.Context, p gms.Partition) (gms.RowIter, error) {
	s, ok := p.(*Scan)
	if !ok {
		return nil, gms.ErrPartitionNotFound.New(p.Key())
	}
	if t.frozen != nil {
		return &frozenIter{b: t.frozen}, nil
	}
	tr := Began(ctx)
	if err := t.join(ctx, tr); err != nil {
		return nil, myerr.Storage(err)
	}
	return t.Rows(FromContext(ctx), tr, s), nil
}

// Inserter implements gms.InsertableTable.
func (t *Table) Inserter(ctx *gms.Context) gms.RowInserter { return t.editor(ctx) }

// Updater implements gms.UpdatableTable.
func (t *Table) Updater(ctx *gms.Context) gms.RowUpdater { return t.editor(ctx) }

// Deleter implements gms.DeletableTable.
func (t *Table) Deleter(ctx *gms.Context) gms.RowDeleter { return t.editor(ctx) }

// Replacer implements gms.ReplaceableTable.
func (t *Table) Replacer(ctx *gms.Context) gms.RowReplacer { return t.editor(ctx) }

// GetForeignKeyEditor implements gms.ForeignKeyTable.
func (t *Table) GetForeignKeyEditor(ctx *gms.Context) gms.ForeignKeyEditor { return t.editor(ctx) }

// AutoIncrementSetter implements gms.AutoIncrementTable.
func (t *Table) AutoIncrementSetter(ctx *gms.Context) gms.AutoIncrementSetter { return t.editor(ctx) }

// GetNextAutoIncrementValue implements gms.AutoIncrementTable. A value given by the statement
// advances the sequence only when its row is inserted.
func (t *Table) GetNextAutoIncrementValue(ctx *gms.Context, given any) (uint64, error) {
	if given != nil {
		v, _, err := types.Uint64.Convert(ctx, given)
		if err != nil {
			return 0, err
		}
		return v.(uint64), nil
	}
	n, err := t.Store.next(ctx, Began(ctx), t.Info.Sequence)
	n = min(n, t.Info.autoMax())
	if s := FromContext(ctx); s != nil {
		s.noteDrawn(t.Info.Name, n)
	}
	return n, myerr.Storage(err)
}

// PeekNextAutoIncrementValue implements gms.AutoIncrementGetter.
func (t *Table) PeekNextAutoIncrementValue(ctx *gms.Context) (uint64, error) {
	if t.Info.Sequence.IsNil() {
		return 0, nil
	}
	n, err := t.Store.peek(Began(ctx), t.Info.Sequence)
	return min(n, t.Info.autoMax()), myerr.Storage(err)
}

// peek returns the next number of a sequence without drawing it.
func (st *Store) peek(tr *Transaction, sequence region.Ptr) (uint64, error) {
	if tr.created[sequence] {
		return catalog.PeekIn(tr.Tx, sequence)
	}
	return st.Catalog.Sequences().Peek(sequence)
}

// next returns the next number of a sequence.
func (st *Store) next(ctx *gms.Context, tr *Transaction, sequence region.Ptr) (uint64, error) {
	if tr.created[sequence] {
		return catalog.NextIn(tr.Tx, sequence)
	}
	return st.Catalog.Sequences().Next(ctx.Context, sequence)
}

// RowCount implements gms.StatisticsTable. The count is approximate, as InnoDB's is: the planner
// and SHOW TABLE STATUS use it.
func (t *Table) RowCount(ctx *gms.Context) (uint64, bool, error) {
	n := int64(t.Store.Counters.Read(t.Info.Counter))
	if tr := Current(ctx); tr != nil {
		n += tr.rows[t.Info.Counter] + shelvedRows(ctx, t.Info.Counter)
	}
	return uint64(max(n, 0)), false, nil
}

// DataLength implements gms.StatisticsTable: the row count times an estimate of a row's length.
func (t *Table) DataLength(ctx *gms.Context) (uint64, error) {
	n, _, err := t.RowCount(ctx)
	perRow := uint64(region.HeaderBytes + row.HeaderBytes)
	for _, c := range t.Info.Columns {
		perRow += 2 + uint64(guessBytes(c.Type))
	}
	return n * perRow, err
}

// guessBytes guesses the length of a column's values.
func guessBytes(d catalog.Type) uint32 {
	switch d.Kind {
	case catalog.KindChar, catalog.KindVarchar, catalog.KindBinary, catalog.KindVarbinary:
		return min(d.Length, 64)
	case catalog.KindText, catalog.KindBlob, catalog.KindJSON:
		return 128
	case catalog.KindVector:
		return 4 * d.Length
	}
	return 4
}

// Truncate implements gms.TruncateableTable: the table gets new, empty structures, and the old ones
// are freed after the transaction. A DELETE without a condition also truncates; it can be rolled
// back.
func (t *Table) Truncate(ctx *gms.Context) (int, error) {
	tr := Began(ctx)
	if err := tr.Writable(ctx, t.Store); err != nil {
		return 0, err
	}
	n, _, err := t.RowCount(ctx)
	if err != nil {
		return 0, err
	}
	m := tr.Tx.Mark()
	if err := t.truncate(ctx, tr); err != nil {
		tr.Tx.Rollback(m)
		return 0, myerr.Storage(err)
	}
	tr.count(t.Info.Counter, -int64(min(n, math.MaxInt64)))
	return int(n), nil
}

// truncate gives the table new, empty structures, and drops the old ones.
func (t *Table) truncate(ctx *gms.Context, tr *Transaction) error {
	tbl, err := t.latest(ctx, tr)
	if err != nil {
		return err
	}
	tr.Tx.ToFree()
	next := tbl.Clone()
	if err := t.Store.renewStorage(tr, next); err != nil {
		return err
	}
	if next, err = t.Store.Catalog.UpdateTable(tr.Tx, next); err != nil {
		return err
	}
	if err := t.Store.Catalog.Drop(tr.Tx, tbl.Storage()); err != nil {
		return err
	}
	return t.setDescriptor(ctx, tr, next)
}

// latest returns the table's descriptor as the transaction sees it now: an earlier clause of the
// same statement may have changed it.
func (t *Table) latest(ctx *gms.Context, tr *Transaction) (*catalog.Table, error) {
	tbl, err := t.Store.Descriptor(ctx, tr, t.Info.DB, t.Info.Name)
	if errors.Is(err, catalog.ErrNotFound) || (err == nil && tbl.ID != t.Info.ID) {
		return nil, myerr.TableChanged.New()
	}
	return tbl, err
}

// GetIndexes implements gms.IndexAddressable. Indexes are listed as MySQL does:
// the primary key, then unique ones, then the others.
func (t *Table) GetIndexes(ctx *gms.Context) ([]gms.Index, error) {
	info := t.Info
	if tr := Current(ctx); tr != nil && t.Store.Catalog.Changed(tr.Tx) {
		// A statement is changing the table.
		tbl, err := t.latest(ctx, tr)
		if err != nil {
			return nil, myerr.Storage(err)
		}
		if info, err = t.Store.Info(ctx, tr, tbl); err != nil {
			return nil, err
		}
	}
	var all []gms.Index
	if !info.IsKeyless() {
		all = append(all, t.gmsIndex(info, info.PrimaryKey))
	}
	for _, unique := range []bool{true, false} {
		for _, k := range info.Secondary {
			if k.Unique == unique {
				all = append(all, t.gmsIndex(info, k))
			}
		}
	}
	return all, nil
}

// PreciseMatch implements gms.IndexAddressable: false, because a lookup may return more rows than
// its ranges contain (KeyInfo.keyRange), so that go-mysql-server keeps its filters.
func (t *Table) PreciseMatch() bool { return false }

// IndexedAccess implements gms.IndexAddressable.
func (t *Table) IndexedAccess(_ *gms.Context, l gms.IndexLookup) gms.IndexedTable {
	return &IndexedTable{Table: t}
}

// An IndexedTable is a table that is read through an index.
type IndexedTable struct {
	*Table
	keysOnly bool
}

// SetReferenceCheck implements gms.ReferenceChecker: a foreign key needs to know only whether a row
// exists, and must not conflict with changes to its contents.
func (t *IndexedTable) SetReferenceCheck() error {
	t.keysOnly = true
	return nil
}

// LookupPartitions implements gms.IndexedTable.
func (t *IndexedTable) LookupPartitions(ctx *gms.Context, l gms.IndexLookup) (gms.PartitionIter, error) {
	x, ok := l.Index.(*Index)
	if !ok {
		return nil, fmt.Errorf("sql: lookup through a foreign index %T", l.Index)
	}
	if err := t.refresh(ctx); err != nil {
		return nil, myerr.Storage(err)
	}
	k := t.Info.Key(x.Key.Name)
	if k == nil {
		return nil, myerr.TableChanged.New()
	}
	ranges, ok := l.Ranges.(gms.MySQLRangeCollection)
	if !ok {
		return nil, fmt.Errorf("sql: lookup with ranges of type %T", l.Ranges)
	}
	s := &Scan{Reverse: l.IsReverse, keysOnly: t.keysOnly}
	s.Index, s.Ranges = k.Lookup(ctx, ranges)
	return &onePartition{s}, nil
}

// IsUnique reports whether a key of an index has at most one row.
func (t *IndexedTable) IsUnique(x *Index) bool {
	return x.Key.Unique || x.Key.Name == t.Info.PrimaryKey.Name
}

// GetChecks implements gms.CheckTable.
func (t *Table) GetChecks(ctx *gms.Context) ([]gms.CheckDefinition, error) {
	checks := make([]gms.CheckDefinition, len(t.Info.Checks))
	for i, c := range t.Info.Checks {
		checks[i] = gms.CheckDefinition{Name: c.Name, CheckExpression: c.Expr, Enforced: c.Enforced}
	}
	return checks, nil
}

// GetDeclaredForeignKeys implements gms.ForeignKeyTable.
func (t *Table) GetDeclaredForeignKeys(ctx *gms.Context) ([]gms.ForeignKeyConstraint, error) {
	tbl, tr := t.Info.Table, Began(ctx)
	if t.Store.Catalog.Changed(tr.Tx) {
		var err error
		if tbl, err = t.latest(ctx, tr); err != nil {
			return nil, myerr.Storage(err)
		}
	}
	fks := make([]gms.ForeignKeyConstraint, len(tbl.ForeignKeys))
	for i, f := range byName(tbl.ForeignKeys) {
		fks[i] = gmsForeignKey(tbl, f)
		if fks[i].IsResolved {
			continue
		}
		// A parent table created after the key counts, too.
		_, err := t.Store.Descriptor(ctx, tr, f.ParentDB, f.ParentTable)
		if err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return nil, myerr.Storage(err)
		}
		fks[i].IsResolved = err == nil
	}
	return fks, nil
}

// GetReferencedForeignKeys implements gms.ForeignKeyTable.
func (t *Table) GetReferencedForeignKeys(ctx *gms.Context) ([]gms.ForeignKeyConstraint, error) {
	tbl, tr := t.Info.Table, Began(ctx)
	if t.Store.Catalog.Changed(tr.Tx) {
		var err error
		if tbl, err = t.latest(ctx, tr); err != nil {
			return nil, myerr.Storage(err)
		}
	}
	var fks []gms.ForeignKeyConstraint
	for _, r := range tbl.ReferencedBy {
		child, err := t.Store.Descriptor(ctx, tr, r.DB, r.Table)
		if err != nil {
			return nil, myerr.Storage(err)
		}
		i := child.ForeignKey(r.Name)
		if i < 0 {
			return nil, fmt.Errorf("%w: %s.%s does not have foreign key %s", catalog.ErrCorrupt, r.DB, r.Table, r.Name)
		}
		fk := gmsForeignKey(child, child.ForeignKeys[i])
		fk.IsResolved = true
		fks = append(fks, fk)
	}
	return fks, nil
}

// byName sorts foreign keys as InnoDB does.
func byName(fks []catalog.ForeignKey) []catalog.ForeignKey {
	return slices.SortedFunc(slices.Values(fks), func(a, b catalog.ForeignKey) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
}

func gmsForeignKey(child *catalog.Table, f catalog.ForeignKey) gms.ForeignKeyConstraint {
	return gms.ForeignKeyConstraint{
		Name: f.Name, Database: child.DB, Table: child.Name,
		ParentDatabase: f.ParentDB, ParentTable: f.ParentTable,
		Columns: append([]string(nil), f.Columns...), ParentColumns: append([]string(nil), f.ParentColumns...),
		OnUpdate: gms.ForeignKeyReferentialAction(f.OnUpdate), OnDelete: gms.ForeignKeyReferentialAction(f.OnDelete),
		IsResolved: f.Resolved,
	}
}

func storedForeignKey(f gms.ForeignKeyConstraint) catalog.ForeignKey {
	return catalog.ForeignKey{
		Name: f.Name, ParentDB: f.ParentDatabase, ParentTable: f.ParentTable,
		Columns: append([]string(nil), f.Columns...), ParentColumns: append([]string(nil), f.ParentColumns...),
		OnUpdate: string(f.OnUpdate), OnDelete: string(f.OnDelete), Resolved: f.IsResolved,
	}
}

// SameName compares names as MySQL does.
func SameName(a, b string) bool { return strings.EqualFold(a, b) }
