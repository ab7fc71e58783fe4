package sql

import (
	"errors"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// For RENAME TABLE and ALTER TABLE ... RENAME name, go-mysql-server drops the databases of the tables' names: it looks
// for all tables in the current database. So our parser puts each database into the name of its table, and this file
// executes the RENAME.

// betweenNames separates the name of a database from that of a table. No name contains it.
const betweenNames = "\x00"

// keepDatabases puts the databases that a RENAME names into the names of the tables.
func keepDatabases(stmt sqlparser.Statement) {
	switch stmt := stmt.(type) {
	case *sqlparser.AlterTable:
		for _, part := range stmt.Statements {
			keepDatabases(part)
		}
	case *sqlparser.DDL:
		if stmt.Action == sqlparser.RenameStr {
			all := append(slices.Clone(stmt.FromTables), stmt.ToTables...)
			if !slices.ContainsFunc(all, func(n sqlparser.TableName) bool { return n.DbQualifier.IsEmpty() }) {
				stmt.Auth.Extra = qualifiedRename{all[0].DbQualifier.String()}
			}
			withDatabases(stmt.FromTables)
			withDatabases(stmt.ToTables)
		}
	}
}

// A qualifiedRename is in the AuthInformation of a RENAME that names a database for each table; database is that of the
// first.
type qualifiedRename struct{ database string }

// A renameAuthorizer makes go-mysql-server plan a qualifiedRename although there may be no current database. From the
// authorization of the RENAME until its plan is made, the session gives the database of the first table as the current
// one.
type renameAuthorizer struct{ gms.AuthorizationHandler }

// HandleAuth implements gms.AuthorizationHandler.
func (h renameAuthorizer) HandleAuth(ctx *gms.Context, state gms.AuthorizationQueryState, auth sqlparser.AuthInformation) error {
	if r, ok := auth.Extra.(qualifiedRename); ok {
		auth.Extra = nil
		if s, ok := ctx.Session.(*Session); ok {
			s.running.viewDatabase = r.database
		}
	}
	return h.AuthorizationHandler.HandleAuth(ctx, state, auth)
}

func withDatabases(names sqlparser.TableNames) {
	for i, n := range names {
		if db := n.DbQualifier.String(); db != "" {
			names[i].Name = sqlparser.NewTableIdent(db + betweenNames + n.Name.String())
		}
	}
}

// rename renames tables and views, one after the other.
func (b *builder) rename(ctx *gms.Context, n *plan.RenameTable) (gms.RowIter, error) {
	for i, name := range n.OldNames {
		from, old, err := b.placeOf(ctx, n, name)
		if err != nil {
			return nil, err
		}
		to, name, err := b.placeOf(ctx, n, n.NewNames[i])
		if err != nil {
			return nil, err
		}
		if err := renameOne(ctx, n, from, old, to, name); err != nil {
			return nil, err
		}
	}
	return gms.RowsToRowIter(gms.NewRow(types.NewOkResult(0))), nil
}

// placeOf returns the database and the name of a table, as RENAME names it.
func (b *builder) placeOf(ctx *gms.Context, n *plan.RenameTable, name string) (*Database, string, error) {
	db := n.Db.Name()
	if at := strings.Index(name, betweenNames); at >= 0 {
		db, name = name[:at], name[at+len(betweenNames):]
	}
	found, err := (&provider{b.e}).Database(ctx, db)
	if err != nil {
		return nil, "", err
	}
	return found.(*Database), name, nil
}

// renameOne renames a table or a view.
func renameOne(ctx *gms.Context, n *plan.RenameTable, from *Database, old string, to *Database, name string) error {
	within := *n
	within.Db = from
	table, isTable := within.TableExists(ctx, old)
	isMove := !store.SameName(from.name, to.name)
	switch {
	case isTable && isMove:
		return from.moveTable(ctx, old, to.name, name)
	case isTable:
		return within.RenameTable(ctx, from, table, old, name)
	case isMove:
		if _, exists, err := from.GetViewDefinition(ctx, old); err != nil || exists {
			if err == nil {
				err = myerr.ViewMoves.New(from.name, to.name)
			}
			return err
		}
		return gms.ErrTableNotFound.New(old)
	}
	isView, err := within.RenameView(ctx, from, ctx.GetViewRegistry(), old, name)
	if err == nil && !isView {
		err = gms.ErrTableNotFound.New(old)
	}
	return err
}

// RenameTable implements gms.TableRenamer.
func (d *Database) RenameTable(ctx *gms.Context, old, name string) error {
	return d.moveTable(ctx, old, d.name, name)
}

// moveTable gives the table old another name, and puts it into database db, which may be d. A table with triggers or foreign
// keys cannot get another database.
func (d *Database) moveTable(ctx *gms.Context, old, db, name string) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	tbl, err := d.e.Store.Descriptor(ctx, tr, d.name, old)
	if errors.Is(err, catalog.ErrNotFound) {
		return gms.ErrTableNotFound.New(old)
	}
	if err != nil {
		return tr.Fail(err)
	}
	triggers, err := d.e.Store.Catalog.Triggers(tr.Tx, d.name, old)
	if err != nil {
		return tr.Fail(err)
	}
	if !store.SameName(db, d.name) {
		switch {
		case len(triggers) > 0:
			return myerr.TriggerMoves.New()
		case len(tbl.ForeignKeys)+len(tbl.ReferencedBy) > 0: // a foreign key and its tables must be in one database
			return myerr.NotSupported("moving a table with foreign keys to another database: drop them first")
		}
	}
	_, err = d.e.Store.Catalog.RenameTable(tr.Tx, tbl, db, name)
	if errors.Is(err, catalog.ErrExists) {
		return gms.ErrTableAlreadyExists.New(name)
	}
	if err != nil {
		return tr.Fail(err)
	}
	return tr.Fail(d.retarget(tr.Tx, triggers, name))
}

// retarget makes triggers those of another table. It stores each as a new object, because the catalog caches, by the
// object, which table a trigger belongs to.
func (d *Database) retarget(t *txn.Tx, triggers []*catalog.Definition, table string) error {
	for _, def := range triggers {
		text, ok := compat.Retarget(def.Statement, gms.NewSqlModeFromString(def.SQLMode).ParserOptions(), table)
		if !ok {
			continue // the text cannot be parsed: the trigger's table is unknown
		}
		if err := d.e.Store.Catalog.DropDefinition(t, catalog.Trigger, d.name, def.Name); err != nil {
			return err
		}
		moved := *def
		moved.Statement = text
		if err := d.e.Store.Catalog.CreateDefinition(t, catalog.Trigger, d.name, &moved); err != nil {
			return err
		}
	}
	return nil
}
