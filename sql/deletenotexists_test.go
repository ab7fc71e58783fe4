package sql

import (
	"fmt"
	"testing"
)

// A DELETE from tables with aliases and NOT EXISTS deletes the rows of those tables for which the subquery has none, at
// each execution. The rows are those that MariaDB leaves.
func TestDeleteNotExists(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	for _, name := range []string{"x", "y", "z"} {
		c.exec("CREATE TABLE " + name + " (id INT PRIMARY KEY, v INT)")
	}
	for _, test := range []struct{ query, x, y string }{
		{"DELETE a FROM x a WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = a.v)", "[[1 1]]", "[[1 1] [2 5]]"},
		{"DELETE a FROM x AS a WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = a.v AND q.id < 0)", "[]", "[[1 1] [2 5]]"},
		{"DELETE a, b FROM x a JOIN y b ON a.id = b.id WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = a.v)", "[[1 1] [3 <nil>]]", "[[1 1]]"},
		{"DELETE b FROM x a JOIN y b ON a.id = b.id WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = a.v)", "[[1 1] [2 2] [3 <nil>]]", "[[1 1]]"},
		{"DELETE FROM a USING x a LEFT JOIN y b ON a.id = b.id WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = a.v)", "[[1 1]]", "[[1 1] [2 5]]"},
		{"DELETE x FROM x WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = x.v)", "[[1 1]]", "[[1 1] [2 5]]"},
		{"DELETE b FROM x b JOIN x a ON a.id = b.id + 1 WHERE NOT EXISTS (SELECT 1 FROM z q WHERE q.v = a.v)", "[[3 <nil>]]", "[[1 1] [2 5]]"},
	} {
		for i := range 3 {
			for _, q := range []string{
				"DELETE FROM x", "DELETE FROM y", "DELETE FROM z", "INSERT INTO x VALUES (1, 1), (2, 2), (3, NULL)", "INSERT INTO y VALUES (1, 1), (2, 5)", "INSERT INTO z VALUES (1, 1), (2, NULL)",
			} {
				c.exec(q)
			}
			if _, _, err := c.run(test.query); err != nil {
				t.Errorf("%s, execution %d: %v", test.query, i+1, err)
			}
			for name, want := range map[string]string{"x": test.x, "y": test.y} {
				_, rows, err := c.run("SELECT * FROM " + name + " ORDER BY id")
				if got := fmt.Sprint(rows); got != want || err != nil {
					t.Errorf("%s, execution %d: %s has %s, want %s (%v)", test.query, i+1, name, got, want, err)
				}
			}
		}
	}
}
