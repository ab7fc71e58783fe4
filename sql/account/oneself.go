package account

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// Users need no privilege to list their own grants or connections, or to end their own
// connections. go-mysql-server requires the privilege to do so for all users.

// noteOwn skips the authorization of statements that list grants or connections, or end
// connections: when they are executed, they check whether these are the user's own.
func noteOwn(stmt sqlparser.Statement) {
	free := sqlparser.AuthInformation{AuthType: sqlparser.AuthType_IGNORE}
	switch n := stmt.(type) {
	case *sqlparser.ShowGrants:
		if n.For == nil {
			n.Auth = free
		}
	case *sqlparser.Show:
		if n.Auth.AuthType == sqlparser.AuthType_PROCESS {
			n.Auth = free
		}
	case *sqlparser.Kill:
		n.Auth = free
	}
}

// SeenConnections filters the rows of all connections: it keeps those that the user may see,
// either all or only the user's own. A row's second value is its user.
func (p Privileges) SeenConnections(ctx *gms.Context, rows gms.RowIter) (gms.RowIter, error) {
	if p.Has(ctx, gms.PrivilegeType_Process) {
		return rows, nil
	}
	all, err := gms.RowIterToRows(ctx, rows)
	user := ctx.Client().User
	return gms.RowsToRowIter(slices.DeleteFunc(all, func(r gms.Row) bool { return r[1] != user })...), err
}

// RefuseKill refuses KILL of another user's connection to users without the privilege. The listener
// handles connections that do not exist.
func (p Privileges) RefuseKill(ctx *gms.Context, n *plan.Kill) error {
	for _, c := range ctx.ProcessList.Processes() {
		if c.Connection != n.ConnID || c.User == ctx.Client().User {
			continue
		}
		if !p.Has(ctx, gms.PrivilegeType_Super) {
			return myerr.NotOwner.New(n.ConnID)
		}
	}
	return nil
}
