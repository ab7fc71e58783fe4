package sql

import (
	"context"
	"testing"

	"github.com/farmsql/farmsql/farm"
)

// rowCount is what the planner is told.
func (c *client) rowCount(table string) any {
	c.in.t.Helper()
	return c.exec("SELECT table_rows FROM information_schema.tables WHERE table_name = '" + table + "'")[0][0]
}

// After a crash the counts of rows are short, and put right by Recount; after an
// orderly end they are exact, and nothing is counted.
func TestRecount(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openInstance(t, cfg)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE tree (id INT PRIMARY KEY)")
	c.exec("CREATE TABLE hash (id INT, PRIMARY KEY (id) USING HASH)")
	c.exec("CREATE TABLE keyless (id INT)")
	c.exec("CREATE TABLE bare (id INT PRIMARY KEY)")
	for _, table := range []string{"tree", "hash", "keyless"} {
		c.exec("INSERT INTO " + table + " VALUES (1), (2), (3)")
	}
	want := map[string]any{"tree": uint64(3), "hash": uint64(3), "keyless": uint64(3), "bare": uint64(0)}
	c.s.Abort()
	crashed := cfg
	crashed.Volatile = cfg.Volatile.Clone()
	in.close()

	in = openInstance(t, crashed)
	ctx := context.Background()
	if n := in.client("d").rowCount("tree"); n != uint64(0) {
		t.Errorf("%v rows are counted after the crash: the test shows nothing", n)
	}
	if n, err := in.e.Recount(ctx); n != len(want) || err != nil {
		t.Errorf("counted %d tables: %v", n, err)
	}
	for table, n := range want {
		if got := in.client("d").rowCount(table); got != n {
			t.Errorf("%s has %v rows, want %v", table, got, n)
		}
	}
	in.client("d").exec("INSERT INTO d.tree VALUES (4)")
	in.close()
	// Recount counts the tables only if Counted was not called before.
	for _, tables := range []int{len(want), 0} {
		in = openInstance(t, crashed)
		if n, err := in.e.Recount(ctx); n != tables || err != nil {
			t.Errorf("counted %d tables, want %d: %v", n, tables, err)
		}
		if n := in.client("d").rowCount("tree"); n != uint64(4) {
			t.Errorf("tree has %v rows, want 4", n)
		}
		if err := in.check(); err != nil {
			t.Error(err)
		}
		if err := in.e.Counted(ctx); err != nil {
			t.Error(err)
		}
		in.close()
	}
}

// A long table keeps its count.
func TestRecountIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("inserts many rows")
	}
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	c.exec("INSERT INTO t (v) VALUES (1)")
	for n := 1; n <= recountTable; n += min(n, 4096) { // what a log takes
		c.exec("INSERT INTO t (v) SELECT v FROM (SELECT v FROM t LIMIT 4096) s")
	}
	if n, err := in.e.Recount(context.Background()); n != 0 || err != nil {
		t.Errorf("counted %d tables: %v", n, err)
	}
}
