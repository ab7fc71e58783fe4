package catalog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// openAltering opens an instance whose first machine alters table d.t, and begins a
// transaction at the second, which changes the catalog.
func openAltering(t *testing.T) (in *instance, owner uint64, tx *txn.Tx) {
	t.Helper()
	in = open(t, farm.Config{Machines: 2})
	in.table(in.catalogs[0], "d", "t")
	owner = in.alter(in.catalogs[0])
	c := in.catalogs[1]
	tx = c.Machine().Begin()
	if err := c.CreateDatabase(tx, &catalog.Database{Name: "e"}); err != nil {
		t.Fatal(err)
	}
	return in, owner, tx
}

// A transaction that changes the catalog waits for tables that others alter, too.
func TestAlteringIsSeenAmongChanges(t *testing.T) {
	in, owner, tx := openAltering(t)
	defer in.close()
	defer tx.Abort()
	c := in.catalogs[1]
	if _, err := c.Table(tx, "d", "t"); !errors.Is(err, catalog.ErrAltering) {
		t.Errorf("a table that somebody alters: %v", err)
	}
	if err := in.catalogs[0].EndAlteration(context.Background(), "d", "t", owner); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Table(tx, "d", "t"); err != nil {
		t.Errorf("after the alteration: %v", err)
	}
	if err := tx.Commit(context.Background()); err != nil {
		t.Errorf("it was not to depend on the table as it was: %v", err)
	}
}

// A transaction that has read a table's mark has a conflict, even if the mark has been removed by
// then. Otherwise it could get a table that another transaction is altering: the mark may be set
// between Peek and Read of the head.
func TestMarkThatWasReadIsAConflict(t *testing.T) {
	in, owner, tx := openAltering(t)
	defer in.close()
	defer tx.Abort()
	c := in.catalogs[1]
	if _, err := c.Altered(tx, "d", "t", owner); err != nil {
		t.Fatal(err)
	}
	if err := in.catalogs[0].EndAlteration(context.Background(), "d", "t", owner); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Table(tx, "d", "t"); !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("a table whose mark the transaction has read: %v", err)
	}
}
