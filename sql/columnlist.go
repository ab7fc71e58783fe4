package sql

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/types"

	ownplan "github.com/farmsql/farmsql/sql/plan"
)

// This file reads information_schema.columns. go-mysql-server resolves the defaults of the columns
// of all tables while it plans, and then makes a row of each, although programs ask for one table.
// While go-mysql-server plans, our table has the columns of one small table only. When it is read, it makes rows of only
// those tables whose database and name the statement's conditions may accept.

// An infoSchema is information_schema with our table of columns.
type infoSchema struct {
	gms.Database
	e *Engine
}

// GetTableInsensitive implements gms.Database.
func (d infoSchema) GetTableInsensitive(ctx *gms.Context, name string) (gms.Table, bool, error) {
	switch strings.ToLower(name) {
	case information_schema.ColumnsTableName:
		return columnsTable{information_schema.NewColumnsTable(), d.e}, true, nil
	case information_schema.StatisticsTableName: // without the type of its own, which adds nothing
		return d.e.privileges.HideTables(information_schema.NewDefaultStats().InformationSchemaTable), true, nil
	}
	t, ok, err := d.Database.GetTableInsensitive(ctx, name)
	return d.e.privileges.HideTables(t), ok, err
}

// A columnsTable is information_schema.columns before it has a catalog.
type columnsTable struct {
	*information_schema.ColumnsTable
	e *Engine
}

// AssignCatalog implements gms.CatalogTable. It returns a table of go-mysql-server's own type, because rules of its
// analyzer look for that type.
func (t columnsTable) AssignCatalog(c gms.Catalog) gms.Table {
	t.ColumnsTable.RowIter = t.e.columnRows(nil)
	return t.ColumnsTable.AssignCatalog(planningCatalog{t.e.privileges.Seen(c)})
}

// A planningCatalog shows one small table, because go-mysql-server needs a column while it plans.
type planningCatalog struct{ gms.Catalog }

// AllDatabases implements gms.DatabaseProvider. It returns only information_schema, with no table but that of
// engines: this is the one small table.
func (c planningCatalog) AllDatabases(ctx *gms.Context) []gms.Database {
	info, err := c.Database(ctx, gms.InformationSchemaDatabaseName)
	if err != nil {
		return nil
	}
	t, ok, err := info.GetTableInsensitive(ctx, information_schema.EnginesTableName)
	if err != nil || !ok {
		return nil
	}
	return []gms.Database{oneTable{info, t}}
}

// oneTable is a database with one of its tables, and without its views.
type oneTable struct {
	gms.Database
	table gms.Table
}

// GetTableNames implements gms.Database.
func (d oneTable) GetTableNames(*gms.Context) ([]string, error) { return []string{d.table.Name()}, nil }

// GetTableInsensitive implements gms.Database.
func (d oneTable) GetTableInsensitive(*gms.Context, string) (gms.Table, bool, error) {
	return d.table, true, nil
}

// onlyViews is a database with some of its views, and without its tables.
type onlyViews struct {
	gms.Database
	gms.ViewDatabase
	views []gms.ViewDefinition
}

// GetTableNames implements gms.Database.
func (d onlyViews) GetTableNames(*gms.Context) ([]string, error) { return nil, nil }

// AllViews implements gms.ViewDatabase.
func (d onlyViews) AllViews(*gms.Context) ([]gms.ViewDefinition, error) { return d.views, nil }

// A catalogOf is a catalog with one database.
type catalogOf struct {
	gms.Catalog
	db gms.Database
}

// AllDatabases implements gms.DatabaseProvider.
func (c catalogOf) AllDatabases(*gms.Context) []gms.Database { return []gms.Database{c.db} }

// A columnReader makes rows of information_schema.columns, as go-mysql-server's table has them.
type columnReader = func(*gms.Context, gms.Catalog, gms.Schema) (gms.RowIter, error)

// columnRows returns the reader for the rows that conditions may accept.
func (e *Engine) columnRows(conditions []gms.Expression) columnReader {
	columns := information_schema.NewColumnsTable().Schema(nil)
	return func(ctx *gms.Context, c gms.Catalog, _ gms.Schema) (gms.RowIter, error) {
		s := columnList{e: e, catalog: c.(planningCatalog).Catalog, wanted: wantedOf(columns, conditions)}
		for _, db := range s.catalog.AllDatabases(ctx) {
			if !s.wanted.accepts(ctx, db.Name(), nil) {
				continue
			}
			if err := s.readTables(ctx, db); err != nil {
				return nil, err
			}
			if err := s.readViews(ctx, db); err != nil {
				return nil, err
			}
		}
		return gms.RowsToRowIter(s.rows...), nil
	}
}

// columnList collects rows of information_schema.columns.
type columnList struct {
	e       *Engine
	catalog gms.Catalog
	wanted  wantedTables
	rows    []gms.Row
}

func (s *columnList) readTables(ctx *gms.Context, db gms.Database) error {
	names, err := db.GetTableNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !s.wanted.accepts(ctx, db.Name(), name) {
			continue
		}
		t, ok, err := db.GetTableInsensitive(ctx, name)
		if err != nil {
			return err
		}
		if !ok {
			return gms.ErrTableNotFound.New(name)
		}
		if err := s.readTable(ctx, db, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *columnList) readTable(ctx *gms.Context, db gms.Database, t gms.Table) error {
	columns, err := s.resolved(ctx, db, t)
	if err != nil {
		return err
	}
	return s.add(ctx, oneTable{db, t}, columns)
}

// resolved returns a table's columns with defaults whose texts can be shown.
func (s *columnList) resolved(ctx *gms.Context, db gms.Database, t gms.Table) (gms.Schema, error) {
	columns := t.Schema(ctx).Copy()
	hasDefaults := false
	for _, c := range columns {
		c.DatabaseSource = db.Name()
		hasDefaults = hasDefaults || c.Default != nil
	}
	if !hasDefaults {
		return columns, nil
	}
	a := s.e.gms.Analyzer
	columns = planbuilder.New(ctx, s.catalog, nil).ResolveSchemaDefaults(db.Name(), t.Name(), columns)
	shown := information_schema.NewColumnsTable()
	shown.AssignCatalog(catalogOf{s.catalog, oneTable{db, t}})
	if _, err := shown.AllColumns(ctx); err != nil {
		return nil, err
	}
	defaults, err := shown.WithDefaultsSchema(columns)
	if err != nil {
		return nil, err
	}
	var n gms.Node = plan.NewResolvedTable(defaults, db, nil)
	for _, rule := range s.e.defaultRules {
		if n, _, err = rule.Apply(ctx, a, n, nil, analyzer.DefaultRuleSelector, &gms.QueryFlags{}); err != nil {
			return nil, err
		}
	}
	return n.(*plan.ResolvedTable).Table.(*information_schema.ColumnsTable).AllColumns(ctx)
}

func (s *columnList) readViews(ctx *gms.Context, db gms.Database) error {
	with, ok := db.(gms.ViewDatabase)
	if !ok {
		return nil
	}
	all, err := with.AllViews(ctx)
	if err != nil {
		return err
	}
	var views []gms.ViewDefinition
	for _, v := range all {
		if s.wanted.accepts(ctx, db.Name(), v.Name) {
			views = append(views, v)
		}
	}
	if len(views) == 0 {
		return nil
	}
	return inDatabase(ctx, db.Name(), func() error { return s.add(ctx, onlyViews{db, with, views}, nil) })
}

// add adds the rows for db, a database that has only the tables or views to be shown.
func (s *columnList) add(ctx *gms.Context, db gms.Database, columns gms.Schema) error {
	iter, err := information_schema.NewColumnsTable().RowIter(ctx, catalogOf{s.catalog, db}, columns)
	if err != nil {
		return err
	}
	rows, err := gms.RowIterToRows(ctx, iter)
	s.rows = append(s.rows, rows...)
	return err
}

// columnsFilter returns n with a table that makes only the rows that n may accept. It returns nil if n is not a
// filter over information_schema.columns.
func (e *Engine) columnsFilter(ctx *gms.Context, n *plan.Filter) gms.Node {
	conditions := func() []gms.Expression { return expression.SplitConjunction(ctx, n.Expression) }
	child := e.narrowed(n.Child, conditions)
	if child == nil {
		return nil
	}
	return plan.NewFilter(n.Expression, child)
}

// narrowed returns a copy of a node that reads information_schema.columns, in which the table makes
// only rows that the conditions may accept; nil for other nodes.
func (e *Engine) narrowed(n gms.Node, conditions func() []gms.Expression) gms.Node {
	switch n := n.(type) {
	case *plan.TableAlias:
		if child := e.narrowed(n.Child, conditions); child != nil {
			copied := *n
			copied.Child = child
			return &copied
		}
	case *plan.ResolvedTable:
		if t := e.narrowedTable(n.Table, conditions); t != nil {
			copied := *n
			copied.Table = t
			return &copied
		}
	}
	return nil
}

func (e *Engine) narrowedTable(t gms.Table, conditions func() []gms.Expression) gms.Table {
	switch t := t.(type) {
	case *plan.ProcessTable:
		if inner := e.narrowedTable(t.Table, conditions); inner != nil {
			copied := *t
			copied.Table = inner
			return &copied
		}
	case *information_schema.ColumnsTable:
		copied := *t
		copied.RowIter = e.columnRows(conditions())
		return &copied
	case *information_schema.InformationSchemaTable:
		if !narrowedTables[t.TableName] {
			return nil
		}
		copied := *t
		wanted := wantedOf(t.TableSchema, conditions())
		return copied.AssignCatalog(e.privileges.SeenOnly(e.gms.Analyzer.Catalog, wanted.accepts))
	}
	return nil
}

// narrowedOrSame returns a table of information_schema that makes only rows that the conditions may accept. The conditions are on
// rows of all of its columns. If none of them restricts it, or it is another table, it returns the table.
func (e *Engine) narrowedOrSame(t gms.Table, conditions []gms.Expression) gms.Table {
	if narrowed := e.narrowedTable(t, func() []gms.Expression { return conditions }); narrowed != nil {
		return narrowed
	}
	return t
}

// narrowedTables are the tables, besides that of columns, whose rows each belong to a table, a view or a database of the
// catalog.
var narrowedTables = map[string]bool{
	information_schema.TablesTableName: true, information_schema.ViewsTableName: true, information_schema.SchemataTableName: true,
	information_schema.TableConstraintsTableName: true, information_schema.StatisticsTableName: true, information_schema.KeyColumnUsageTableName: true, information_schema.ReferentialConstraintsTableName: true,
}

// wantedTables are the conditions of a statement. accepts evaluates those that depend only on the names of databases
// and tables.
type wantedTables struct {
	conditions []gms.Expression
	// schemas and tables are the positions of the columns with these names, in rows of width columns.
	schemas, tables []int
	width           int
}

// wantedOf returns the wantedTables for conditions on rows of a table of information_schema.
func wantedOf(columns gms.Schema, conditions []gms.Expression) wantedTables {
	w := wantedTables{conditions: conditions, width: len(columns)}
	for i, c := range columns {
		switch strings.ToLower(c.Name) {
		case "table_schema", "constraint_schema", "schema_name":
			w.schemas = append(w.schemas, i)
		case "table_name":
			w.tables = append(w.tables, i)
		}
	}
	return w
}

// accepts reports whether the conditions may accept rows of a table or, if table is nil, of any table of the database.
func (w wantedTables) accepts(ctx *gms.Context, db string, table any) bool {
	row := make(gms.Row, w.width)
	for _, i := range w.schemas {
		row[i] = db
	}
	for _, i := range w.tables {
		row[i] = table
	}
	for _, c := range w.conditions {
		if !w.namesOnly(ctx, c, table != nil) {
			continue
		}
		if v, err := c.Eval(ctx, row); err == nil && (v == nil || v == false) {
			return false
		}
	}
	return true
}

// namesOnly reports whether a condition depends only on the name of the database and, if tables is set, of the table.
// It must also be possible to evaluate the condition any number of times, and without a warning.
func (w wantedTables) namesOnly(ctx *gms.Context, e gms.Expression, tables bool) bool {
	switch e := e.(type) {
	case *expression.GetField:
		return slices.Contains(w.schemas, e.Index()) || (tables && slices.Contains(w.tables, e.Index()))
	case *expression.Literal, *ownplan.Parameter:
		return types.IsText(e.Type(ctx))
	case *expression.Equals, *expression.InTuple, *expression.HashInTuple, expression.Tuple, *expression.And, *expression.Or,
		*expression.Not, *expression.Like, *function.Lower, *function.Upper, *function.Database:
	default:
		return false
	}
	for _, c := range e.Children() {
		if !w.namesOnly(ctx, c, tables) {
			return false
		}
	}
	return true
}
