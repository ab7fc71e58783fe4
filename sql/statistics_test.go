package sql

import "testing"

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
