package catalog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
)

// A transaction that changes the catalog waits for tables that others alter, too.
func TestAlteringIsSeenAmongChanges(t *testing.T) {
	in := open(t, farm.Config{Machines: 2})
	defer in.close()
	in.table(in.catalogs[0], "d", "t")
	owner := in.alter(in.catalogs[0])
	c := in.catalogs[1]
	tx := c.Machine().Begin()
	defer tx.Abort()
	if err := c.CreateDatabase(tx, &catalog.Database{Name: "e"}); err != nil {
		t.Fatal(err)
	}
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

// Who has read a table's mark cannot go on with the table, not even when it is off: a
// table was had once that somebody altered, where the mark came between the look at the
// head and the read of it.
func TestMarkThatWasReadIsAConflict(t *testing.T) {
	in := open(t, farm.Config{Machines: 2})
	defer in.close()
	in.table(in.catalogs[0], "d", "t")
	owner := in.alter(in.catalogs[0])
	c := in.catalogs[1]
	tx := c.Machine().Begin()
	defer tx.Abort()
	if err := c.CreateDatabase(tx, &catalog.Database{Name: "e"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Altered(tx, "d", "t", owner); err != nil {
		t.Fatal(err)
	}
	if err := in.catalogs[0].EndAlteration(context.Background(), "d", "t", owner); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Table(tx, "d", "t"); !errors.Is(err, txn.ErrConflict) {
		t.Errorf("a table whose mark the transaction has read: %v", err)
	}
}
