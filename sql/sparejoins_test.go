package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestSpareJoins: after many lookups in a table a join reads the whole table. Its rows stay those that go-mysql-server returns, and
// those of a join that has no memory for the table.
func TestSpareJoins(t *testing.T) {
	c := newInstance(t).client("")
	fillSpareTables(c)
	for _, query := range []string{
		"SELECT COUNT(*), SUM(s.v), MIN(s.t), MAX(o.id) FROM o JOIN s ON s.id = o.k",
		"SELECT COUNT(*), SUM(s.v) FROM o JOIN s ON s.t = o.t AND s.v > o.v",
		"SELECT COUNT(*), COUNT(s.id), SUM(s.v) FROM o LEFT JOIN s ON s.id = o.k AND s.v < 60",
		"SELECT COUNT(*), SUM(o.id) FROM o LEFT JOIN s ON s.id = o.k WHERE s.id IS NULL",
		"SELECT COUNT(*), SUM(s.id) FROM o JOIN s ON s.v = o.v",
		"SELECT COUNT(*), SUM(o.id) FROM o WHERE EXISTS (SELECT 1 FROM s WHERE s.t = o.t AND s.id <> o.k)",
		"SELECT COUNT(*), SUM(o.id) FROM o WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = o.k AND s.v > 20)",
		"SELECT o.id, s.id FROM o JOIN s ON s.t = o.t WHERE o.id > 5 ORDER BY o.id, s.id LIMIT 500, 5",
	} {
		_, rows, err := c.run(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.byOurPlan(t, query); got != fmt.Sprint(rows) {
			t.Errorf("%s: %s, want %v", query, got, rows)
		}
	}
	query := "SELECT COUNT(*), SUM(s.v) FROM o JOIN s ON s.id = o.k WHERE o.id > 0"
	c.byOurPlan(t, query)
	c.exec("BEGIN")
	c.exec("DELETE FROM s WHERE id > 3")
	c.exec("INSERT INTO s VALUES (7, 't7', 1.00)")
	_, rows, err := c.run(query)
	if got := c.byOurPlan(t, query); err != nil || got != fmt.Sprint(rows) {
		t.Errorf("in a transaction: %s, want %v (%v)", got, rows, err)
	}
	c.exec("ROLLBACK")
}

// fillSpareTables makes a table o of 700 rows that refer to the 90 rows of a table s, or to none.
func fillSpareTables(c *client) {
	for _, q := range []string{"CREATE DATABASE IF NOT EXISTS d", "USE d", "CREATE TABLE s (id SMALLINT PRIMARY KEY, t VARCHAR(9), v DECIMAL(6,2), KEY (t), KEY (v))",
		"CREATE TABLE o (id INT PRIMARY KEY, k BIGINT, t VARCHAR(12), v DECIMAL(8,3))"} {
		c.exec(q)
	}
	var small, large []string
	for i := range 90 {
		small = append(small, fmt.Sprintf("(%d, 't%d', %d.%02d)", i, i%40, i%70, i))
	}
	for i := range 700 {
		k, text := fmt.Sprint(i%100), fmt.Sprintf("'T%d'", i%45)
		switch {
		case i%11 == 0:
			k, text = "NULL", "NULL"
		case i%101 == 0:
			k = "70000"
		}
		large = append(large, fmt.Sprintf("(%d, %s, %s, %d.%02d%d)", i, k, text, i%70, i%90, i%2))
	}
	c.exec("INSERT INTO s VALUES " + strings.Join(small, ", "))
	c.exec("INSERT INTO o VALUES " + strings.Join(large, ", "))
}

// Without memory for the whole table lookups go on.
func TestSpareJoinsWithoutMemory(t *testing.T) {
	m := boundedMemory(3<<20, math.MaxInt64)
	c := openBounded(t, m)
	c.exec("CREATE TABLE wide (id INT PRIMARY KEY, s TEXT)")
	c.exec("CREATE TABLE few (id INT PRIMARY KEY, k INT)")
	for at := 0; at < 2000; at += 200 {
		var rows []string
		for i := at; i < at+200; i++ {
			rows = append(rows, fmt.Sprintf("(%d, '%s')", i, strings.Repeat("x", 2000)))
		}
		c.exec("INSERT INTO wide VALUES " + strings.Join(rows, ", "))
		c.s.Settle()
	}
	c.insertNumbers("few", 1100)
	query := "SELECT COUNT(*) FROM few JOIN wide ON wide.id = few.k WHERE wide.s > '' AND few.id >= 0"
	for range 3 {
		_, rows, _, err := c.compiled(query)
		if err != nil || fmt.Sprint(rows) != "[[1100]]" {
			t.Errorf("%v, %v", rows, err)
		}
		c.s.Settle()
		if n := m.Used(); n != 0 {
			t.Fatalf("%d bytes are still held", n)
		}
	}
	if !c.byPlan {
		t.Error("no plan of ours")
	}
}
