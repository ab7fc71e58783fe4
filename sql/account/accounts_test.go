package account

import (
	"context"
	"strings"
	"testing"

	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// newStore returns the store of an instance whose only accounts are root's.
func newStore(t *testing.T) *store.Store {
	t.Helper()
	cluster, err := farm.Open(farm.Config{RegionBytes: 8 << 20, LogBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	cat, err := catalog.Open(ctx, cluster.Machine(0), cluster.Root(), catalog.Config{FreeRow: row.Free})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cat.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	return store.New(cluster.Machine(0), cat, store.Config{})
}

// write changes rows of accounts as a transaction of another process does: nobody is told.
func write(t *testing.T, st *store.Store, put, remove []catalog.Account) {
	t.Helper()
	if err := st.Machine.Run(t.Context(), func(tx *txn.Tx) error { return st.Catalog.ChangeAccounts(tx, put, remove) }); err != nil {
		t.Fatal(err)
	}
}

// has reports whether the copy has a user.
func (a *Accounts) has(user string) bool {
	rd := a.db.Reader()
	defer rd.Close()
	_, ok := rd.GetUser(mysql_db.UserPrimaryKey{User: user, Host: "localhost"})
	return ok
}

// joe returns the row of a user.
func joe(t *testing.T) catalog.Account {
	t.Helper()
	user := &mysql_db.User{User: "joe", Host: "localhost", PrivilegeSet: mysql_db.NewPrivilegeSet(), Plugin: "mysql_native_password"}
	data, err := account{user: user}.encode()
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Account{User: "joe", Host: "localhost", Data: data}
}

// Where a commit may have changed accounts and nobody was told, the next statement looks.
func TestStaleAccounts(t *testing.T) {
	st, a := newStore(t), New(clock.System{}, false)
	write(t, st, []catalog.Account{joe(t)}, nil)
	if err := a.Refresh(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	write(t, st, nil, []catalog.Account{{User: "joe", Host: "localhost"}})
	a.KeepFresh(st)
	if !a.has("joe") {
		t.Error("an engine that is alone has looked without a reason")
	}
	a.isStale.Store(true)
	a.KeepFresh(st)
	if a.has("joe") {
		t.Error("joe is there still")
	}
}

// An error names the row of an account that cannot be decoded.
func TestDamagedAccounts(t *testing.T) {
	st, a := newStore(t), New(clock.System{}, false)
	if err := a.Refresh(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	for row, says := range map[string]string{"x": "invalid character", `{"Version":2}`: "format 2, this program reads 1", `{"Version":1,"User":"AAAA"}`: "ill formatted", `{"Version":1,"User":""}`: ""} {
		write(t, st, []catalog.Account{{User: "joe", Host: "%", Data: []byte(row)}}, nil)
		if err := a.Refresh(t.Context(), st); err == nil || !strings.Contains(err.Error(), `account "joe"@"%"`) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", row, err)
		}
	}
}
