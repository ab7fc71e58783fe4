package account

import (
	"bytes"
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// Execute executes a statement about accounts in the session's transaction, on the catalog of st.
// execute makes go-mysql-server execute a node, on the database of users that the node names.
func (a *Accounts) Execute(ctx *gms.Context, st *store.Store, n gms.Node, execute func(gms.Node) (gms.RowIter, error)) (gms.RowIter, error) {
	tr := store.Began(ctx)
	if err := tr.Writable(ctx, st); err != nil {
		return nil, err
	}
	before, err := storedIn(st.Catalog, tr.Tx)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	own := mysql_db.CreateEmptyMySQLDb()
	own.SetPersister(&mysql_db.NoopPersister{})
	putAll(own, before)
	rows, err := executeOn(own, n, execute)
	if err != nil {
		return nil, err
	}
	after := accountsOf(own)
	for _, x := range after {
		if a.isOwn(x.name()) {
			return nil, myerr.OwnAccount.New(x.user.User, x.user.Host)
		}
	}
	if err := writeChanges(st.Catalog, tr.Tx, before, after); err != nil {
		return nil, tr.Fail(err)
	}
	tr.After = func() { a.changed(st) }
	return rows, nil
}

// putAll adds accounts to a database of users, in place of those with the same names.
func putAll(db *mysql_db.MySQLDb, accounts []account) {
	ed := db.Editor()
	defer ed.Close()
	for _, x := range accounts {
		x.putInto(ed)
	}
}

// executeOn executes a statement about accounts on own, its private database of users.
func executeOn(own *mysql_db.MySQLDb, n gms.Node, execute func(gms.Node) (gms.RowIter, error)) (gms.RowIter, error) {
	if r, ok := n.(*plan.RenameUser); ok {
		return renameUsers(r, own)
	}
	d, ok := n.(gms.Databaser)
	if !ok {
		return nil, fmt.Errorf("sql: %T is of no database of users", n)
	}
	n, err := d.WithDatabase(own)
	if err != nil {
		return nil, err
	}
	return execute(n)
}

// RefuseTables refuses a change of the tables that show accounts: they are copies. a may be nil.
func (a *Accounts) RefuseTables(changed gms.Node) (err error) {
	if a == nil {
		return nil
	}
	transform.Inspect(changed, func(n gms.Node) bool {
		if i, ok := n.(*plan.IndexedTableAccess); ok {
			n = i.TableNode
		}
		if t, ok := n.(*plan.ResolvedTable); ok {
			if _, ok := t.SqlDatabase.(*mysql_db.MySQLDb); ok {
				err = myerr.NotSupported("'changing mysql.%s': CREATE USER, ALTER USER, DROP USER, GRANT and REVOKE do", t.Name())
			}
		}
		return err == nil
	})
	return err
}

// writeChanges writes the differences between two states of the accounts, before and
// after, into the transaction's rows.
func writeChanges(cat *catalog.Catalog, t *txn.Tx, before, after []account) error {
	remaining := make(map[mysql_db.UserPrimaryKey]account, len(before)) // not seen in after
	for _, x := range before {
		if x.row != nil {
			remaining[x.name()] = x
		}
	}
	var put, remove []catalog.Account
	for _, x := range after {
		row, err := x.encode()
		if err != nil {
			return err
		}
		if !bytes.Equal(remaining[x.name()].row, row) {
			put = append(put, catalog.Account{User: x.user.User, Host: x.user.Host, Data: row})
		}
		delete(remaining, x.name())
	}
	for _, x := range before {
		if _, isGone := remaining[x.name()]; isGone {
			remove = append(remove, catalog.Account{User: x.name().User, Host: x.name().Host})
		}
	}
	isFirst := len(before) > 0 && before[0].row == nil // the accounts are not rows of the catalog yet
	if len(put)+len(remove) == 0 && !isFirst {
		return nil
	}
	if isFirst {
		if err := cat.PutSetting(t, usersSetting, usersMoved); err != nil {
			return err
		}
	}
	return cat.ChangeAccounts(t, put, remove)
}
