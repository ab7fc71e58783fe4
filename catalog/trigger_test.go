package catalog_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// tableOfTrigger is the catalogs' Config.TriggerTable: in these tests the text is the table's name.
func tableOfTrigger(d *catalog.Definition) string { return d.Text }

func (in *instance) trigger(c *catalog.Catalog, db, name, table string) {
	in.Helper()
	in.run(c, func(t *txn.Tx) error {
		return c.CreateDefinition(t, catalog.Trigger, db, &catalog.Definition{Name: name, Text: table})
	})
}

func (in *instance) dropTrigger(c *catalog.Catalog, db, name string) {
	in.Helper()
	in.run(c, func(t *txn.Tx) error { return c.DropDefinition(t, catalog.Trigger, db, name) })
}

func namesOf(t *testing.T, c *catalog.Catalog, tx *txn.Tx, db, table string) (names []string) {
	t.Helper()
	all, err := c.Triggers(tx, db, table)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// A transaction that has asked for the triggers of a table commits if other tables get or lose
// triggers, and only then.
func TestTriggersOfTables(t *testing.T) {
	in := open(t, farm.Config{Machines: 2})
	defer in.close()
	a, b := in.catalogs[0], in.catalogs[1]
	in.trigger(a, "d", "of_s", "s")
	in.trigger(a, "d", "of_t", "T")
	in.trigger(a, "e", "elsewhere", "t")
	for _, isCold := range []bool{false, true} {
		for _, c := range []struct {
			change    func()
			conflicts bool
		}{
			{func() { in.trigger(a, "d", "more_of_s", "s") }, false},
			{func() { in.dropTrigger(a, "d", "more_of_s") }, false},
			{func() { in.trigger(a, "e", "more", "t") }, false},
			{func() { in.dropTrigger(a, "e", "more") }, false},
			{func() { in.trigger(a, "d", "a_of_t", "t") }, true},
			{func() { in.dropTrigger(a, "d", "a_of_t") }, true},
			{func() { in.trigger(a, "d", "z_of_t", "T") }, true},
			{func() { in.dropTrigger(a, "d", "z_of_t") }, true},
			{func() { in.trigger(a, "d", "unreadable", "") }, true},
			{func() { in.dropTrigger(a, "d", "unreadable") }, true},
		} {
			if isCold {
				b.ForgetTriggers()
			}
			tx := b.Machine().Begin()
			if got := namesOf(t, b, tx, "D", "t"); !slices.Contains(got, "of_t") || slices.Contains(got, "of_s") || slices.Contains(got, "elsewhere") {
				t.Errorf("table t has triggers %v", got)
			}
			c.change()
			if err := tx.Validate(); errors.Is(err, outcome.ErrConflict) != c.conflicts {
				t.Errorf("cold %v: validated with %v, conflict expected: %v", isCold, err, c.conflicts)
			}
			tx.Abort()
		}
	}
}

// A transaction sees the triggers that it creates and drops itself.
func TestOwnTriggers(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	in.trigger(c, "d", "old", "t")
	in.run(c, func(tx *txn.Tx) error {
		for name, table := range map[string]string{"new": "t", "other": "s"} {
			if err := c.CreateDefinition(tx, catalog.Trigger, "d", &catalog.Definition{Name: name, Text: table}); err != nil {
				return err
			}
		}
		if got := namesOf(t, c, tx, "d", "t"); !slices.Equal(got, []string{"new", "old"}) {
			t.Errorf("with a new one there are %v", got)
		}
		if err := c.DropDefinition(tx, catalog.Trigger, "d", "old"); err != nil {
			return err
		}
		if got := namesOf(t, c, tx, "d", "t"); !slices.Equal(got, []string{"new"}) {
			t.Errorf("without the old one there are %v", got)
		}
		return nil
	})
}

// A trigger that was dropped, and that the machine has forgotten, counts as one of the table.
func TestForgottenTrigger(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	in.trigger(c, "d", "of_s", "s")
	tx := c.Machine().Begin()
	defer tx.Abort()
	if got := namesOf(t, c, tx, "d", "t"); got != nil {
		t.Errorf("table t has triggers %v", got)
	}
	in.dropTrigger(c, "d", "of_s")
	c.ForgetTriggers()
	if err := tx.Validate(); !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("validated with %v", err)
	}
}

// The cache of the triggers' tables is bounded.
func TestManyTriggers(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	for range catalog.TriggerTablesMax/2 + 1 {
		in.trigger(c, "d", "g", "t")
		in.run(c, func(tx *txn.Tx) error {
			namesOf(t, c, tx, "d", "t")
			return nil
		})
		in.dropTrigger(c, "d", "g")
		in.trigger(c, "d", "g", "s")
		in.run(c, func(tx *txn.Tx) error {
			namesOf(t, c, tx, "d", "t")
			return nil
		})
		in.dropTrigger(c, "d", "g")
	}
	if n := c.CachedTriggers(); n == 0 || n > catalog.TriggerTablesMax {
		t.Errorf("%d triggers are cached", n)
	}
}

// DatabaseName returns the name as it was created, and depends on whether the database exists alone.
func TestDatabaseName(t *testing.T) {
	in := open(t, farm.Config{Machines: 2})
	defer in.close()
	a, b := in.catalogs[0], in.catalogs[1]
	in.run(a, func(tx *txn.Tx) error {
		if err := a.CreateDatabase(tx, &catalog.Database{Name: "Shop"}); err != nil {
			return err
		}
		name, err := a.DatabaseName(tx, "SHOP") // its own, not committed yet
		if name != "Shop" {
			t.Errorf("the new database is called %q", name)
		}
		return err
	})
	name := func(tx *txn.Tx) {
		t.Helper()
		if got, err := b.DatabaseName(tx, "shop"); got != "Shop" || err != nil {
			t.Errorf("the database is called %q: %v", got, err)
		}
	}
	tx := b.Machine().Begin()
	defer tx.Abort()
	name(tx)
	in.run(a, func(tx *txn.Tx) error {
		db, err := a.Database(tx, "shop")
		if err != nil {
			return err
		}
		db.Collation = 46
		return a.UpdateDatabase(tx, db)
	})
	name(tx)
	if err := tx.Validate(); err != nil {
		t.Errorf("another collation: %v", err)
	}
	in.run(a, func(tx *txn.Tx) error { return a.DropDatabase(tx, "shop") })
	if err := tx.Validate(); !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("dropped: %v", err)
	}
	in.run(b, func(tx *txn.Tx) error {
		if _, err := b.DatabaseName(tx, "shop"); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("no database: %v", err)
		}
		return nil
	})
}
