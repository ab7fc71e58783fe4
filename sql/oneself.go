package sql

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

// seesAll reports whether a user sees the connections of others.
func (e *Engine) seesAll(ctx *gms.Context) bool {
	return e.may(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, gms.PrivilegeType_Process))
}

// ownProcesses keeps the rows of the user's own connections; a row's second value is its user.
func ownProcesses(ctx *gms.Context, rows gms.RowIter) (gms.RowIter, error) {
	all, err := gms.RowIterToRows(ctx, rows)
	user := ctx.Client().User
	return gms.RowsToRowIter(slices.DeleteFunc(all, func(r gms.Row) bool { return r[1] != user })...), err
}

// showProcesses is SHOW PROCESSLIST.
func (b *builder) showProcesses(ctx *gms.Context, s *Session, n *plan.ShowProcessList, row gms.Row) (gms.RowIter, error) {
	rows, err := b.ordinary(ctx, s, n, row)
	if err != nil || b.e.seesAll(ctx) {
		return rows, err
	}
	return ownProcesses(ctx, rows)
}

// killable refuses KILL of another user's connection to users without the privilege. The listener
// handles connections that do not exist.
func (e *Engine) killable(ctx *gms.Context, n *plan.Kill) error {
	for _, p := range ctx.ProcessList.Processes() {
		if p.Connection != n.ConnID || p.User == ctx.Client().User {
			continue
		}
		if !e.may(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, gms.PrivilegeType_Super)) {
			return myerr.NotOwner.New(n.ConnID)
		}
	}
	return nil
}
