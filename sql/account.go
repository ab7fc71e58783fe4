package sql

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
)

// An account is a user or a role, and the roles that it has.
type account struct {
	user  *mysql_db.User
	roles []*mysql_db.RoleEdge
	row   []byte // in which it was found; nil if in none
}

// name is what an account has alone.
func (x account) name() mysql_db.UserPrimaryKey {
	return mysql_db.UserPrimaryKey{User: x.user.User, Host: x.user.Host}
}

func (x account) putInto(ed *mysql_db.Editor) {
	ed.PutUser(x.user)
	for _, r := range x.roles {
		ed.PutRoleEdge(r)
	}
}

// loadUsers reads what go-mysql-server has written of a database of users.
func loadUsers(db *mysql_db.MySQLDb, b []byte) error {
	if json.Valid(b) { // as the first versions had it
		return db.LoadData(gms.NewEmptyContext(), b)
	}
	ed := db.Editor()
	defer ed.Close()
	return db.OverwriteUsersAndGrantData(gms.NewEmptyContext(), ed, bytes.Clone(b))
}

// accountsOf returns what a database of users has, but for what only a process has, in
// the order of the names.
func accountsOf(db *mysql_db.MySQLDb) (accounts []account) {
	rd := db.Reader()
	defer rd.Close()
	rd.VisitUsers(func(u *mysql_db.User) {
		if !u.IsEphemeral {
			// As it was loaded, names with capitals are kept as go-mysql-server never looks
			// for them, and REVOKE finds nothing.
			u.PrivilegeSet = u.PrivilegeSet.Copy()
			roles := rd.GetToUserRoleEdges(mysql_db.RoleEdgesToKey{ToHost: u.Host, ToUser: u.User})
			accounts = append(accounts, account{user: u, roles: roles})
		}
	})
	slices.SortFunc(accounts, func(x, y account) int {
		return cmp.Or(cmp.Compare(x.user.User, y.user.User), cmp.Compare(x.user.Host, y.user.Host))
	})
	return accounts
}

// An accountRow is how an account is stored: as JSON.
type accountRow struct {
	Version int // accountFormat
	// User is a database with this user alone, as go-mysql-server writes it.
	User   []byte
	IsRole bool `json:",omitempty"`
	// Roles are those that the user has, by user and host.
	Roles []grantedRole `json:",omitempty"`
}

type grantedRole struct {
	User, Host string
	WithAdmin  bool `json:",omitempty"`
}

const accountFormat = 1

// encode returns the row's bytes. Dynamic privileges come in any order.
func (x account) encode() ([]byte, error) {
	row := accountRow{Version: accountFormat, IsRole: x.user.IsRole}
	for _, r := range x.roles {
		row.Roles = append(row.Roles, grantedRole{r.FromUser, r.FromHost, r.WithAdminOption})
	}
	slices.SortFunc(row.Roles, func(a, b grantedRole) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Host, b.Host))
	})
	db := mysql_db.CreateEmptyMySQLDb()
	db.SetPersister(keepBytes{&row.User})
	ed := db.Editor()
	defer ed.Close()
	ed.PutUser(x.user)
	if err := db.Persist(gms.NewEmptyContext(), ed); err != nil {
		return nil, err
	}
	return json.Marshal(row)
}

// keepBytes takes what go-mysql-server writes.
type keepBytes struct{ to *[]byte }

// Persist implements mysql_db.MySQLDbPersistence.
func (k keepBytes) Persist(_ *gms.Context, b []byte) error {
	*k.to = bytes.Clone(b)
	return nil
}

func decodeAccount(b []byte) (account, error) {
	var row accountRow
	if err := json.Unmarshal(b, &row); err != nil {
		return account{}, err
	}
	if row.Version != accountFormat {
		return account{}, fmt.Errorf("format %d, this program reads %d", row.Version, accountFormat)
	}
	db := mysql_db.CreateEmptyMySQLDb()
	if err := loadUsers(db, row.User); err != nil {
		return account{}, err
	}
	all := accountsOf(db)
	if len(all) != 1 {
		return account{}, fmt.Errorf("%d users in one row", len(all))
	}
	x := all[0]
	x.row, x.user.IsRole = b, row.IsRole
	for _, r := range row.Roles {
		x.roles = append(x.roles, &mysql_db.RoleEdge{FromUser: r.User, FromHost: r.Host, ToUser: x.user.User, ToHost: x.user.Host, WithAdminOption: r.WithAdmin})
	}
	return x, nil
}
