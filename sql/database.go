package sql

import (
	"errors"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/sql/trigger"
	"github.com/farmsql/farmsql/txn"
)

var (
	_ gms.Database                = (*Database)(nil)
	_ gms.TableCreator            = (*Database)(nil)
	_ gms.IndexedTableCreator     = (*Database)(nil)
	_ gms.TableDropper            = (*Database)(nil)
	_ gms.TableRenamer            = (*Database)(nil)
	_ gms.CollatedDatabase        = (*Database)(nil)
	_ gms.ViewDatabase            = (*Database)(nil)
	_ gms.TriggerDatabase         = (*Database)(nil)
	_ gms.StoredProcedureDatabase = (*Database)(nil)
	_ gms.EventDatabase           = (*Database)(nil)
	_ gms.SchemaValidator         = (*Database)(nil)
	_ trigger.Database            = (*Database)(nil)
)

// A Database is one database. It holds only its name: each transaction reads the
// database's contents from the catalog.
type Database struct {
	e    *Engine
	name string
}

// Name implements gms.Nameable.
func (d *Database) Name() string { return d.name }

// GetTableInsensitive implements gms.Database.
func (d *Database) GetTableInsensitive(ctx *gms.Context, name string) (gms.Table, bool, error) {
	tr := store.Began(ctx)
	t, ok, err := d.e.Store.Table(ctx, tr, d.name, name)
	if err != nil || !ok {
		return nil, false, myerr.Storage(err)
	}
	return t, true, nil
}

// GetTableNames implements gms.Database.
func (d *Database) GetTableNames(ctx *gms.Context) ([]string, error) {
	tables, err := d.e.Store.Catalog.Tables(store.Began(ctx).Tx, d.name)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	return names, nil
}

// ValidateSchema implements gms.SchemaValidator.
func (d *Database) ValidateSchema(schema gms.Schema) error {
	for _, c := range schema {
		if _, err := row.Describe(c.Type); err != nil {
			return err
		}
	}
	return nil
}

// CreateTable implements gms.TableCreator.
func (d *Database) CreateTable(ctx *gms.Context, name string, schema gms.PrimaryKeySchema, collation gms.CollationID, comment string) error {
	return d.createTable(ctx, name, schema, gms.IndexDef{}, collation, comment)
}

// CreateIndexedTable implements gms.IndexedTableCreator.
func (d *Database) CreateIndexedTable(ctx *gms.Context, name string, schema gms.PrimaryKeySchema, key gms.IndexDef, collation gms.CollationID) error {
	for _, c := range key.Columns {
		at := schema.Schema.IndexOfColName(c.Name)
		if at < 0 {
			return gms.ErrColumnNotFound.New(c.Name)
		}
		if c.Length > 0 && !types.IsText(schema.Schema[at].Type) {
			return gms.ErrInvalidIndexPrefix.New(c.Name)
		}
	}
	return d.createTable(ctx, name, schema, key, collation, d.e.Store.TableComment(ctx))
}

// createTable creates a table with the primary key that key describes. It takes USING HASH and
// LIKE from the statement's syntax tree.
func (d *Database) createTable(ctx *gms.Context, name string, schema gms.PrimaryKeySchema, key gms.IndexDef, collation gms.CollationID, comment string) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	t := &catalog.Table{DB: d.name, Name: name, Comment: comment, Collation: uint16(collation), Created: ctx.QueryTime().Unix()}
	names := make([]string, len(schema.PkOrdinals))
	for i, at := range schema.PkOrdinals {
		names[i] = schema.Schema[at].Name
	}
	if key.Storage == gms.IndexUsing_Hash || d.e.Store.UsingHash(ctx)[store.ColumnList(names)] {
		t.Primary.Access = catalog.AccessHash
	}
	if err := store.SetSchema(ctx, t, schema, key.Columns); err != nil {
		return err
	}
	like, err := d.e.Store.LikeTable(ctx, tr)
	if err != nil {
		return tr.Fail(err)
	}
	store.MakeLike(t, like)
	before := tr.Tx.Mark()
	if err := d.e.Store.CreateStorage(tr, t); err != nil {
		return tr.Fail(err)
	}
	// Fail now, not at the first row, if a type cannot be a key.
	if _, err := store.NewTableInfo(t); err != nil {
		tr.Tx.Rollback(before)
		return err
	}
	_, err = d.e.Store.Catalog.CreateTable(tr.Tx, t)
	if errors.Is(err, catalog.ErrExists) {
		tr.Tx.Rollback(before) // with IF NOT EXISTS the statement succeeds, and commits
		return gms.ErrTableAlreadyExists.New(name)
	}
	return tr.Fail(err)
}

// DropTable implements gms.TableDropper.
func (d *Database) DropTable(ctx *gms.Context, name string) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	tbl, err := d.e.Store.Descriptor(ctx, tr, d.name, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return gms.ErrTableNotFound.New(name)
	}
	if err != nil {
		return tr.Fail(err)
	}
	return tr.Fail(d.e.Store.Catalog.DropTable(tr.Tx, tbl))
}

// GetCollation implements gms.CollatedDatabase.
func (d *Database) GetCollation(ctx *gms.Context) gms.CollationID {
	c := gms.Collation_Default
	_ = d.e.Store.View(ctx, func(t *txn.Tx) error {
		db, err := d.e.Store.Catalog.Database(t, d.name)
		if err == nil && db.Collation != 0 {
			c = gms.CollationID(db.Collation)
		}
		return err
	})
	return c
}

// SetCollation implements gms.CollatedDatabase.
func (d *Database) SetCollation(ctx *gms.Context, c gms.CollationID) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	db, err := d.e.Store.Catalog.Database(tr.Tx, d.name)
	if err != nil {
		return tr.Fail(err)
	}
	changed := *db
	changed.Collation = uint16(c)
	return tr.Fail(d.e.Store.Catalog.UpdateDatabase(tr.Tx, &changed))
}

// CreateView implements gms.ViewDatabase.
func (d *Database) CreateView(ctx *gms.Context, name, selectText, statement string) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	err = d.e.Store.Catalog.CreateDefinition(tr.Tx, catalog.View, d.name, &catalog.Definition{
		Name: name, Text: selectText, Statement: statement, SQLMode: gms.LoadSqlMode(ctx).String(),
	})
	if errors.Is(err, catalog.ErrExists) {
		return gms.ErrExistingView.New(d.name, name)
	}
	return tr.Fail(err)
}

// DropView implements gms.ViewDatabase.
func (d *Database) DropView(ctx *gms.Context, name string) error {
	return d.drop(ctx, catalog.View, name, gms.ErrViewDoesNotExist.New(d.name, name))
}

// drop removes a definition; if there is none of that name, it fails with missing.
func (d *Database) drop(ctx *gms.Context, kind catalog.Definer, name string, missing error) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	err = d.e.Store.Catalog.DropDefinition(tr.Tx, kind, d.name, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return missing
	}
	return tr.Fail(err)
}

func gmsView(v *catalog.Definition) gms.ViewDefinition {
	return gms.ViewDefinition{Name: v.Name, TextDefinition: v.Text, CreateViewStatement: v.Statement, SqlMode: v.SQLMode}
}

// GetViewDefinition implements gms.ViewDatabase.
func (d *Database) GetViewDefinition(ctx *gms.Context, name string) (gms.ViewDefinition, bool, error) {
	v, err := d.e.Store.Catalog.Definition(store.Began(ctx).Tx, catalog.View, d.name, strings.ToLower(name))
	if errors.Is(err, catalog.ErrNotFound) {
		return gms.ViewDefinition{}, false, nil
	}
	if err != nil {
		return gms.ViewDefinition{}, false, myerr.Storage(err)
	}
	if err := readView(ctx, d.name, v.Statement); err != nil {
		return gms.ViewDefinition{}, false, err
	}
	return gmsView(v), true, nil
}

// AllViews implements gms.ViewDatabase.
func (d *Database) AllViews(ctx *gms.Context) ([]gms.ViewDefinition, error) {
	return definitions(ctx, d, catalog.View, gmsView)
}

// definitions returns all definitions of a kind, each converted by convert.
func definitions[T any](ctx *gms.Context, d *Database, kind catalog.Definer, convert func(*catalog.Definition) T) ([]T, error) {
	defs, err := d.e.Store.Catalog.Definitions(store.Began(ctx).Tx, kind, d.name)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	all := make([]T, len(defs))
	for i, v := range defs {
		all[i] = convert(v)
	}
	return all, nil
}
