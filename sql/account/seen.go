package account

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// HideTables returns information_schema's table t so that it shows only databases, tables, views and events that the
// user has a privilege on. go-mysql-server shows all tables and views of a database to users with a privilege on one of
// them, and those of all databases to users with any global privilege.
func (p Privileges) HideTables(t gms.Table) gms.Table {
	if t, ok := t.(gms.CatalogTable); ok {
		return hidingTable{t, p}
	}
	return t
}

// A hidingTable is a table of information_schema before it has a catalog.
type hidingTable struct {
	gms.CatalogTable
	p Privileges
}

// AssignCatalog implements gms.CatalogTable. It returns a table of go-mysql-server's own type, because rules of its
// analyzer look for these types.
func (t hidingTable) AssignCatalog(c gms.Catalog) gms.Table {
	return t.CatalogTable.AssignCatalog(t.p.Seen(c))
}

// Seen returns a catalog whose databases have only what the user of each statement may see.
func (p Privileges) Seen(c gms.Catalog) gms.Catalog { return seenCatalog{c, p} }

// SeenOnly is Seen without those databases, and tables and views in them, that accepts refuses. It is asked for a database with
// the table nil.
func (p Privileges) SeenOnly(c gms.Catalog, accepts func(ctx *gms.Context, db string, table any) bool) gms.Catalog {
	return narrowCatalog{p.Seen(c), accepts}
}

// A narrowCatalog is a catalog with some of its databases, tables and views.
type narrowCatalog struct {
	gms.Catalog
	accepts func(ctx *gms.Context, db string, table any) bool
}

// AllDatabases implements gms.DatabaseProvider.
func (c narrowCatalog) AllDatabases(ctx *gms.Context) []gms.Database {
	all := slices.DeleteFunc(c.Catalog.AllDatabases(ctx), func(db gms.Database) bool { return !c.accepts(ctx, db.Name(), nil) })
	for i, db := range all {
		if db, ok := db.(seenDatabase); ok {
			all[i] = narrowDatabase{db, c.accepts}
		}
	}
	return all
}

// A narrowDatabase is a database with some of its tables and views.
type narrowDatabase struct {
	seenDatabase
	accepts func(ctx *gms.Context, db string, table any) bool
}

// GetTableNames implements gms.Database.
func (d narrowDatabase) GetTableNames(ctx *gms.Context) ([]string, error) {
	names, err := d.seenDatabase.GetTableNames(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !d.accepts(ctx, d.Name(), name) }), err
}

// AllViews implements gms.ViewDatabase.
func (d narrowDatabase) AllViews(ctx *gms.Context) ([]gms.ViewDefinition, error) {
	views, err := d.seenDatabase.AllViews(ctx)
	return slices.DeleteFunc(views, func(v gms.ViewDefinition) bool { return !d.accepts(ctx, d.Name(), v.Name) }), err
}

// SeenDatabase returns a database that has only what the user of the statement may see.
func (p Privileges) SeenDatabase(ctx *gms.Context, db gms.Database) gms.Database {
	if db, ok := db.(mysql_db.PrivilegedDatabase); ok {
		return seenDatabase{db, p.catalog.MySQLDb.UserActivePrivilegeSet(ctx)}
	}
	return db
}

// A seenCatalog is a catalog as the user of a statement sees it.
type seenCatalog struct {
	gms.Catalog
	p Privileges
}

// AllDatabases implements gms.DatabaseProvider.
func (c seenCatalog) AllDatabases(ctx *gms.Context) []gms.Database {
	all := c.Catalog.AllDatabases(ctx)
	for i, db := range all {
		all[i] = c.p.SeenDatabase(ctx, db)
	}
	return all
}

// AuthorizationHandler implements gms.Catalog. information_schema plans the texts of the views and triggers that it
// shows, and the user need not have the privileges to run them.
func (c seenCatalog) AuthorizationHandler() gms.AuthorizationHandler { return noAuthorizer{} }

// A noAuthorizer authorizes everything.
type noAuthorizer struct{}

// NewQueryState implements gms.AuthorizationHandler.
func (noAuthorizer) NewQueryState(*gms.Context) gms.AuthorizationQueryState { return nil }

// HandleAuth implements gms.AuthorizationHandler.
func (noAuthorizer) HandleAuth(*gms.Context, gms.AuthorizationQueryState, sqlparser.AuthInformation) error {
	return nil
}

// HandleAuthNode implements gms.AuthorizationHandler.
func (noAuthorizer) HandleAuthNode(*gms.Context, gms.AuthorizationQueryState, gms.AuthorizationCheckerNode) error {
	return nil
}

// CheckDatabase implements gms.AuthorizationHandler.
func (noAuthorizer) CheckDatabase(*gms.Context, gms.AuthorizationQueryState, string) error {
	return nil
}

// CheckSchema implements gms.AuthorizationHandler.
func (noAuthorizer) CheckSchema(*gms.Context, gms.AuthorizationQueryState, string, string) error {
	return nil
}

// CheckTable implements gms.AuthorizationHandler.
func (noAuthorizer) CheckTable(*gms.Context, gms.AuthorizationQueryState, string, string, string) error {
	return nil
}

// A seenDatabase is a database with the tables, views, triggers and events that a user with some privileges sees.
type seenDatabase struct {
	mysql_db.PrivilegedDatabase
	has gms.PrivilegeSet
}

// GetTableInsensitive implements gms.Database.
func (d seenDatabase) GetTableInsensitive(ctx *gms.Context, name string) (gms.Table, bool, error) {
	if !d.sees(name) {
		return nil, false, nil
	}
	return d.Unwrap().GetTableInsensitive(ctx, name)
}

// GetTableNames implements gms.Database.
func (d seenDatabase) GetTableNames(ctx *gms.Context) ([]string, error) {
	names, err := d.Unwrap().GetTableNames(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return !d.sees(name) }), err
}

// AllViews implements gms.ViewDatabase.
func (d seenDatabase) AllViews(ctx *gms.Context) ([]gms.ViewDefinition, error) {
	views, err := d.PrivilegedDatabase.AllViews(ctx)
	return slices.DeleteFunc(slices.Clone(views), func(v gms.ViewDefinition) bool { return !d.sees(v.Name) }), err
}

// GetEvents implements gms.EventDatabase.
func (d seenDatabase) GetEvents(ctx *gms.Context) ([]gms.EventDefinition, any, error) {
	if !d.has.Has(gms.PrivilegeType_Event) && !d.has.Database(d.Name()).Has(gms.PrivilegeType_Event) {
		return nil, nil, nil
	}
	return d.PrivilegedDatabase.GetEvents(ctx)
}

// GetTriggers implements gms.TriggerDatabase.
func (d seenDatabase) GetTriggers(ctx *gms.Context) ([]gms.TriggerDefinition, error) {
	all, err := d.PrivilegedDatabase.GetTriggers(ctx)
	db := d.has.Database(d.Name())
	if d.has.Has(gms.PrivilegeType_Trigger) || db.Has(gms.PrivilegeType_Trigger) {
		return all, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(t gms.TriggerDefinition) bool {
		return !db.Table(tableOf(t)).Has(gms.PrivilegeType_Trigger)
	}), err
}

// sees reports whether the user has a privilege on a table or view, or on one of its columns.
func (d seenDatabase) sees(table string) bool {
	return seesIn(d.has, d.Name(), table)
}

// seesIn reports whether privileges let a user see a table or view of a database: one on it, or on one of its columns.
func seesIn(has gms.PrivilegeSet, database, table string) bool {
	db := has.Database(database)
	return slices.ContainsFunc(tablePrivileges, func(t gms.PrivilegeType) bool { return has.Has(t) || db.Has(t) }) ||
		db.Table(table).HasPrivileges()
}

// tablePrivileges are the privileges on a database, or on all, that let users see its tables.
var tablePrivileges = []gms.PrivilegeType{
	gms.PrivilegeType_Select, gms.PrivilegeType_Insert, gms.PrivilegeType_Update, gms.PrivilegeType_Delete,
	gms.PrivilegeType_Create, gms.PrivilegeType_Drop, gms.PrivilegeType_GrantOption, gms.PrivilegeType_References,
	gms.PrivilegeType_Index, gms.PrivilegeType_Alter, gms.PrivilegeType_CreateView, gms.PrivilegeType_ShowView,
	gms.PrivilegeType_Trigger,
}
