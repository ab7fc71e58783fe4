package account

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
)

// Privileges tell what the users of an engine may do. Without Accounts everybody may do
// everything.
type Privileges struct{ catalog *analyzer.Catalog }

// NewPrivileges returns the privileges of the users that an engine's catalog has.
func NewPrivileges(c *analyzer.Catalog) Privileges { return Privileges{c} }

// Has reports whether the user of a context's session has a privilege on everything.
func (p Privileges) Has(ctx *gms.Context, t gms.PrivilegeType) bool {
	return p.catalog.MySQLDb.UserHasPrivileges(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, t))
}

// HideProcesses makes information_schema show other users' statements only to users who may
// see them, because their texts contain values and passwords.
func (p Privileges) HideProcesses(infoSchema gms.Database) {
	t, ok, err := infoSchema.GetTableInsensitive(nil, information_schema.ProcessListTableName)
	list, isList := t.(*information_schema.InformationSchemaTable)
	if err != nil || !ok || !isList {
		panic("sql: information_schema has no processlist") // a dependency has changed
	}
	read := list.Reader
	list.Reader = func(ctx *gms.Context, c gms.Catalog) (gms.RowIter, error) {
		rows, err := read(ctx, c)
		if err != nil {
			return rows, err
		}
		return p.SeenConnections(ctx, rows)
	}
}
