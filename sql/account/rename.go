package account

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/myerr"
)

// renameUsers executes RENAME USER, which go-mysql-server only parses. Grants and roles
// stay with the user.
func renameUsers(n *plan.RenameUser, db *mysql_db.MySQLDb) (gms.RowIter, error) {
	ed := db.Editor()
	defer ed.Close()
	for i := range n.OldName {
		old, name := accountName(n.OldName[i]), accountName(n.NewName[i])
		user, ok := ed.GetUser(old)
		if _, isTaken := ed.GetUser(name); !ok || isTaken {
			return nil, myerr.RenameUserFailed.New(n.OldName[i].String("'"))
		}
		if len(name.User) > 32 {
			return nil, gms.ErrUserNameTooLong.New(name.User)
		}
		if len(name.Host) > 255 {
			return nil, gms.ErrUserHostTooLong.New(name.Host)
		}
		renamed := *user
		renamed.User, renamed.Host = name.User, name.Host
		ed.RemoveUser(old)
		ed.PutUser(&renamed)
		renameInRoles(ed, old, name)
	}
	return gms.RowsToRowIter(gms.NewRow(types.NewOkResult(0))), nil
}

// renameInRoles replaces the account's name old in its roles and in the accounts that have it as
// a role.
func renameInRoles(ed *mysql_db.Editor, old, name mysql_db.UserPrimaryKey) {
	var edges []mysql_db.RoleEdge
	ed.VisitRoleEdges(func(e *mysql_db.RoleEdge) {
		if (e.ToUser == old.User && e.ToHost == old.Host) || (e.FromUser == old.User && e.FromHost == old.Host) {
			edges = append(edges, *e)
		}
	})
	for _, e := range edges {
		ed.RemoveRoleEdge(mysql_db.RoleEdgesPrimaryKey{FromHost: e.FromHost, FromUser: e.FromUser, ToHost: e.ToHost, ToUser: e.ToUser})
		if e.ToUser == old.User && e.ToHost == old.Host {
			e.ToUser, e.ToHost = name.User, name.Host
		}
		if e.FromUser == old.User && e.FromHost == old.Host {
			e.FromUser, e.FromHost = name.User, name.Host
		}
		ed.PutRoleEdge(&e)
	}
}

// accountName returns the name of an account in its stored form.
func accountName(n plan.UserName) mysql_db.UserPrimaryKey {
	if n.AnyHost || n.Host == "" {
		n.Host = "%"
	}
	return mysql_db.UserPrimaryKey{User: n.Name, Host: n.Host}
}
