package sql

import (
	"errors"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

var (
	_ gms.DatabaseProvider         = (*provider)(nil)
	_ gms.MutableDatabaseProvider  = (*provider)(nil)
	_ gms.CollatedDatabaseProvider = (*provider)(nil)
	_ gms.FunctionProvider         = (*provider)(nil)
)

// A provider implements gms.DatabaseProvider over the catalog.
type provider struct{ e *Engine }

// errNoSystem is created once, because creating an error of this kind captures the stack.
var errNoSystem = gms.ErrDatabaseNotFound.New(store.SystemDatabase)

// Database implements gms.DatabaseProvider.
func (p *provider) Database(ctx *gms.Context, name string) (gms.Database, error) {
	if store.SameName(name, store.SystemDatabase) {
		return nil, errNoSystem
	}
	tr := store.CurrentOf(ctx)
	if tr != nil && tr.DB != nil && store.SameName(tr.DB.Name(), name) && !p.e.Store.Catalog.Changed(tr.Tx) {
		return tr.DB, nil // the transaction has looked it up before
	}
	var created string
	err := p.e.Store.View(ctx, func(t *txn.Tx) (err error) {
		created, err = p.e.Store.Catalog.DatabaseName(t, name)
		return err
	})
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, gms.ErrDatabaseNotFound.New(name)
	}
	if err != nil {
		return nil, myerr.Storage(err)
	}
	found := &Database{e: p.e, name: created}
	if tr != nil {
		tr.DB = found
	}
	return found, nil
}

// HasDatabase implements gms.DatabaseProvider.
func (p *provider) HasDatabase(ctx *gms.Context, name string) bool {
	_, err := p.Database(ctx, name)
	return err == nil
}

// AllDatabases implements gms.DatabaseProvider. It cannot report an error; the statement
// meets the same error again. go-mysql-server calls it for every plan with a table, in case
// the table shows routines. It therefore reads in a transaction of its own: if it read in the
// statement's transaction, each statement would conflict with every CREATE and DROP DATABASE.
func (p *provider) AllDatabases(ctx *gms.Context) []gms.Database {
	var all []gms.Database
	read := func(t *txn.Tx) error {
		dbs, err := p.e.Store.Catalog.Databases(t)
		all = all[:0]
		for _, db := range dbs {
			all = append(all, &Database{e: p.e, name: db.Name})
		}
		return err
	}
	if tr := store.CurrentOf(ctx); tr == nil || p.e.Store.Catalog.Changed(tr.Tx) {
		_ = p.e.Store.View(ctx, read)
	} else {
		_ = p.e.Store.Machine.Run(ctx.Context, read)
	}
	return all
}

// CreateDatabase implements gms.MutableDatabaseProvider.
func (p *provider) CreateDatabase(ctx *gms.Context, name string) error {
	return p.CreateCollatedDatabase(ctx, name, gms.Collation_Default)
}

// CreateCollatedDatabase implements gms.CollatedDatabaseProvider.
func (p *provider) CreateCollatedDatabase(ctx *gms.Context, name string, c gms.CollationID) error {
	if store.SameName(name, store.SystemDatabase) {
		return gms.ErrDatabaseExists.New(name)
	}
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	err = p.e.Store.Catalog.CreateDatabase(tr.Tx, &catalog.Database{Name: name, Collation: uint16(c)})
	if errors.Is(err, catalog.ErrExists) {
		return gms.ErrDatabaseExists.New(name)
	}
	return tr.Fail(err)
}

// DropDatabase implements gms.MutableDatabaseProvider.
func (p *provider) DropDatabase(ctx *gms.Context, name string) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	if err := p.e.Store.AwaitTables(ctx, tr, name); err != nil {
		return myerr.Storage(err)
	}
	err = p.e.Store.Catalog.DropDatabase(tr.Tx, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return gms.ErrDatabaseNotFound.New(name)
	}
	return tr.Fail(err)
}

// Function implements gms.FunctionProvider: it returns our replacements of
// go-mysql-server's functions, and GET_LOCK and its relatives over the locks of e.gms. The engines of a process share
// these locks with the listener; go-mysql-server's functions would use the locks that each engine was created with.
func (p *provider) Function(ctx *gms.Context, name string) (gms.Function, bool) {
	if f, ok := standIn(ctx, name); ok {
		return f, true
	}
	if name == "load_file" {
		return p.e.loadFile(), true
	}
	if p.e.gms == nil || (!strings.HasSuffix(name, "_lock") && name != "release_all_locks") {
		return nil, false
	}
	for _, f := range function.GetLockingFuncs(ctx, p.e.gms.LS) {
		if f.FunctionName() == name {
			return f, true
		}
	}
	return nil, false
}
