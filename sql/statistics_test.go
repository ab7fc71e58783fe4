package sql

import (
	"sync"
	"sync/atomic"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// ANALYZE TABLE looks at tables with rows and without.
func TestAnalyzeTable(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))", "CREATE TABLE full (id INT PRIMARY KEY)", "INSERT INTO full VALUES (1), (2)"} {
		c.exec(q)
	}
	for range 2 {
		if rows := c.exec("ANALYZE TABLE t, full"); len(rows) != 2 || rows[0][3] != "OK" || rows[1][3] != "OK" {
			t.Errorf("%v", rows)
		}
		c.exec("DELETE FROM full")
	}
	c.exec("SELECT * FROM t JOIN full ON t.v = full.id")
}

// TestAnalyzeBesideOthers: ANALYZE TABLE wrote the map that other statements were planned by,
// "fatal error: concurrent map read and map write", which nothing can catch.
func TestAnalyzeBesideOthers(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))", "CREATE TABLE t2 (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1, 1), (2, 2)", "INSERT INTO t2 VALUES (1), (2), (3)", "ANALYZE TABLE t, t2"} {
		c.exec(q)
	}
	ctx := gms.NewContext(t.Context(), gms.WithSession(c.s))
	table, _, err := in.e.gms.Analyzer.Catalog.Table(ctx, "d", "t")
	if err != nil {
		t.Fatal(err)
	}
	var isOver atomic.Bool
	var readers sync.WaitGroup
	for range 3 { // what a planner asks
		readers.Go(func() {
			for !isOver.Load() {
				if n, err := in.e.gms.Analyzer.Catalog.StatsProvider.RowCount(ctx, "d", table); n != 2 || err != nil {
					t.Errorf("%d rows of 2: %v", n, err) // those of t2 are 3
				}
			}
		})
	}
	for range 200 {
		c.exec("ANALYZE TABLE t, t2")
	}
	isOver.Store(true)
	readers.Wait()
}
