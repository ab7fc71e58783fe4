package account

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
	row   []byte // the catalog row that the account was read from; nil if it has none
}

// name returns the key by which go-mysql-server finds the account.
func (x account) name() mysql_db.UserPrimaryKey {
	return mysql_db.UserPrimaryKey{User: x.user.User, Host: x.user.Host}
}

// putInto adds the account to a database of users, in place of one with the same name.
func (x account) putInto(ed *mysql_db.Editor) {
	ed.PutUser(x.user)
	for _, r := range x.roles {
		ed.PutRoleEdge(r)
	}
}

// loadUsers loads into db the users that go-mysql-server has serialized as b.
func loadUsers(db *mysql_db.MySQLDb, b []byte) error {
	if json.Valid(b) { // the first versions stored accounts as JSON
		return db.LoadData(gms.NewEmptyContext(), b)
	}
	ed := db.Editor()
	defer ed.Close()
	return db.OverwriteUsersAndGrantData(gms.NewEmptyContext(), ed, bytes.Clone(b))
}

// accountsOf returns the accounts of a database of users in the order of their names,
// without ephemeral accounts, which exist only in this process.
func accountsOf(db *mysql_db.MySQLDb) (accounts []account) {
	rd := db.Reader()
	defer rd.Close()
	rd.VisitUsers(func(u *mysql_db.User) {
		if !u.IsEphemeral {
			// Copy builds the set anew, with names in lower case. A loaded set keeps capitals,
			// but go-mysql-server looks names up in lower case, so that REVOKE would find
			// nothing.
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

// An accountRow is the stored form of an account; it is stored as JSON.
type accountRow struct {
	Version int // accountFormat
	// User is a database with this user alone, as go-mysql-server writes it.
	User   []byte
	IsRole bool `json:",omitempty"`
	// Roles are the roles that the user has, by user and host.
	Roles []grantedRole `json:",omitempty"`
}

type grantedRole struct {
	User, Host string
	WithAdmin  bool `json:",omitempty"`
}

const accountFormat = 1

// encode returns the row's bytes. Dynamic privileges are in no particular order.
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

// keepBytes is a persister that keeps the bytes which go-mysql-server would write.
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
