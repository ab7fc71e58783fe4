package farmsql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// crowded makes two tables of several thousand rows, one with hash indexes and values
// that stand outside of their rows.
func crowded(t *testing.T, db *DB) {
	t.Helper()
	mustExec(t, db.SQL(), "create database d",
		"create table d.tree (a int primary key auto_increment, b varchar(100), key (b))",
		"create table d.hash (a int, b mediumtext, primary key (a) using hash, unique key (b(20)) using hash)",
		"insert into d.tree (b) values (repeat('x', 80)), (repeat('y', 80))",
		fmt.Sprintf("insert into d.hash values (-1, repeat('long', %d))", 64<<10))
	for range 9 {
		mustExec(t, db.SQL(), "insert into d.tree (b) select b from d.tree")
	}
	for i := range 4 {
		mustExec(t, db.SQL(), fmt.Sprintf("insert into d.hash select a + %d, concat(a + %[1]d, ' is a number') from d.tree", 10000*i))
	}
}

// leak allocates an object that nothing points to.
func leak(t *testing.T, db *DB) (leaked region.Ptr) {
	t.Helper()
	err := db.Machine(0).Run(t.Context(), func(tx *txn.Tx) (err error) {
		leaked, _, err = tx.Alloc(64, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return leaked
}

// Objects of a table that is being dropped are no leak, at whatever step their freeing is, and
// Check still finds a leak beside them.
func TestCheckKnowsDrops(t *testing.T) {
	for _, drop := range []string{"drop table d.tree", "drop table d.hash", "truncate table d.tree", "truncate table d.hash", "drop database d"} {
		t.Run(drop, func(t *testing.T) {
			cfg := small(t.TempDir())
			cfg.LogSize, cfg.Machines, cfg.Replicas = 4*MiB, 2, 2
			db := mustOpen(t, cfg)
			crowded(t, db)
			leaked := leak(t, db)
			resume := db.catalogs[0].PauseSweeping()
			mustExec(t, db.SQL(), drop)
			dropped := 0
			look := func(db *DB, when string) {
				t.Helper()
				r, err := db.Check(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "leak: "+leaked.String()) {
					t.Errorf("%s: %.2000v", when, r)
				}
				if r.Dropped > 0 && !strings.Contains(r.String(), fmt.Sprintf("%d being dropped", r.Dropped)) {
					t.Errorf("%s: %v", when, r)
				}
				dropped = max(dropped, r.Dropped)
			}
			look(db, "before anything is freed")
			if dropped == 0 {
				t.Error("nothing is being dropped")
			}
			resume()
			for i := range 5 {
				look(db, fmt.Sprint("look ", i))
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			look(mustOpen(t, Config{Folder: cfg.Folder}), "started again")
		})
	}
}

// Once nothing prevents it, all dropped objects are freed.
func TestCheckLetsSweepingGoOn(t *testing.T) {
	cfg := small("")
	cfg.Volatile, cfg.LogSize = true, 4*MiB
	db := mustOpen(t, cfg)
	crowded(t, db)
	mustExec(t, db.SQL(), "drop database d")
	mustCheck(t, db)
	if err := db.catalogs[0].Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := mustCheck(t, db); r.Dropped != 0 || r.Objects > 10 {
		t.Errorf("%v", r)
	}
}

// Nobody knows which objects a damaged one leads to, so Check does not report these as leaks.
func TestDamageIsNoLeak(t *testing.T) {
	cfg := small("")
	cfg.Volatile, cfg.LogSize = true, 4*MiB
	db := mustOpen(t, cfg)
	crowded(t, db)
	anchor := anchorOf(t, db, "d", "tree")
	err := db.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
		b, err := tx.Write(anchor)
		if err == nil {
			clear(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := db.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := r.String(); len(r.Problems) != 2 || !strings.Contains(s, "d.tree") || !strings.Contains(s, "leaks were not looked for") {
		t.Errorf("%.1000v", r)
	}
}

// anchorOf returns where a table's rows begin.
func anchorOf(t *testing.T, db *DB, database, table string) (anchor region.Ptr) {
	t.Helper()
	err := db.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
		tbl, err := db.catalogs[0].Table(tx, database, table)
		if err == nil {
			anchor = tbl.Primary.Anchor
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return anchor
}
