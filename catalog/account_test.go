package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// The catalog keeps accounts by user and host, both case-sensitive. Every change has a new version,
// and two changes at a time conflict.
func TestAccounts(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	change := func(put, remove []catalog.Account) {
		t.Helper()
		in.run(c, func(tx *txn.Tx) error { return c.ChangeAccounts(tx, put, remove) })
	}
	check := func(version uint64, want ...catalog.Account) {
		t.Helper()
		in.run(c, func(tx *txn.Tx) error {
			if v, err := c.AccountsVersion(tx); v != version || err != nil {
				t.Errorf("version %d, want %d: %v", v, version, err)
			}
			got, err := c.Accounts(tx)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%.200q, want %.200q", got, want)
			}
			return err
		})
	}
	account := func(user, host, data string) catalog.Account {
		return catalog.Account{User: user, Host: host, Data: []byte(data)}
	}
	in.run(c, func(tx *txn.Tx) error {
		v, err := c.AccountsVersion(tx)
		if v != 0 {
			t.Errorf("version %d of none", v)
		}
		return err
	})
	change([]catalog.Account{account("joe", "%", "1"), account("Joe", "localhost", "2")}, nil)
	check(1, account("Joe", "localhost", "2"), account("joe", "%", "1"))
	change([]catalog.Account{account("joe", "%", strings.Repeat("x", 5000)), account("Joe", "localhost", "")}, nil)
	check(2, account("Joe", "localhost", ""), account("joe", "%", strings.Repeat("x", 5000)))
	change(nil, []catalog.Account{account("Joe", "localhost", "")})
	check(3, account("joe", "%", strings.Repeat("x", 5000)))
	for what, fails := range map[string]func(tx *txn.Tx) error{
		"catalog: not found": func(tx *txn.Tx) error { return c.ChangeAccounts(tx, nil, []catalog.Account{account("Joe", "%", "")}) },
		"a zero byte": func(tx *txn.Tx) error {
			return c.ChangeAccounts(tx, []catalog.Account{account("a\x00b", "%", "")}, nil)
		},
		"%\\x00": func(tx *txn.Tx) error { return c.ChangeAccounts(tx, nil, []catalog.Account{account("a", "%\x00", "")}) },
	} {
		if err := c.Machine().Run(context.Background(), fails); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	a, b := c.Machine().Begin(), c.Machine().Begin()
	for i, tx := range []*txn.Tx{a, b} {
		if err := c.ChangeAccounts(tx, []catalog.Account{account(fmt.Sprint(i), "%", "")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(context.Background()); !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("two changes at a time: %v", err)
	}
}
