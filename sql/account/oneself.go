package account

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// A user needs no privilege to ask for his own grants or connections, or to end his own
// connections. go-mysql-server requires the privilege for all users'.

// noteOwn skips the authorization of statements by which users ask for grants or connections, or
// end connections: executing them checks whether those are the user's own.
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

// SeenConnections keeps of the rows of all connections those that the user may see: his own, or
// all. A row's second value is its user.
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
