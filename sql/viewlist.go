package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
)

// This file reads information_schema.views. go-mysql-server plans the text of each view again, in the current database,
// and leaves out those that it cannot plan there.

// placeViews makes information_schema plan each view in the view's own database.
func placeViews(infoSchema gms.Database) {
	t, ok, err := infoSchema.GetTableInsensitive(nil, information_schema.ViewsTableName)
	list, isList := t.(*information_schema.InformationSchemaTable)
	if err != nil || !ok || !isList {
		panic("sql: information_schema has no views") // a dependency has changed
	}
	read := list.Reader
	list.Reader = func(ctx *gms.Context, c gms.Catalog) (gms.RowIter, error) {
		var all []gms.Row
		for _, db := range c.AllDatabases(ctx) {
			err := inDatabase(ctx, db.Name(), func() error {
				rows, err := read(ctx, catalogOf{c, db})
				if err != nil {
					return err
				}
				of, err := gms.RowIterToRows(ctx, rows)
				all = append(all, of...)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		return gms.RowsToRowIter(all...), nil
	}
}

// inDatabase runs do while the session's current database is another one.
func inDatabase(ctx *gms.Context, name string, do func() error) error {
	current := ctx.GetCurrentDatabase()
	ctx.SetCurrentDatabase(name)
	defer ctx.SetCurrentDatabase(current)
	return do()
}
