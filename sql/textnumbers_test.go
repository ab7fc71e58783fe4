package sql

import (
	"fmt"
	"strings"
	"testing"
)

// Texts that are compared with whole numbers are doubles, and what is no number has a warning, at each execution.
func TestTextNumbers(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE o (id INT PRIMARY KEY, r VARCHAR(20), x TEXT, KEY (r))")
	c.exec("INSERT INTO o (id, r) VALUES (1, 'ref1'), (2, '123'), (3, '123abc'), (4, ' 123 '), (5, '1.23e2'), (6, ''), (7, NULL), (8, '-5'), (9, '0x7b'), (10, 'abc'), (11, '1e999')")
	c.exec("UPDATE o SET x = r")
	for _, q := range []struct{ where, ids string }{
		{"# = 123", "[[2] [3] [4] [5]]"}, {"123 = #", "[[2] [3] [4] [5]]"}, {"# = 0", "[[1] [6] [9] [10]]"}, {"# = -5", "[[8]]"}, {"# > 5", "[[2] [3] [4] [5] [11]]"}, {"# <> 123", "[[1] [6] [8] [9] [10] [11]]"}, {"# <= -5", "[[8]]"}, {"# = NULL", "[]"},
		{"# <=> 123", "[[2] [3] [4] [5]]"}, {"# = 123 AND id > 2", "[[3] [4] [5]]"}, {"NOT # = 123", "[[1] [6] [8] [9] [10] [11]]"}, {"# = id", "[]"},
	} {
		for _, column := range []string{"r", "x"} {
			query := "SELECT id FROM o WHERE " + strings.ReplaceAll(q.where, "#", column) + " ORDER BY id"
			for i := range 3 {
				_, rows, _, err := c.compiled(query)
				if got := fmt.Sprint(rows); err != nil || got != q.ids {
					t.Errorf("%s, execution %d: %s %v, want %s", query, i+1, got, err, q.ids)
				}
			}
		}
	}
	for i := range 3 {
		if _, _, _, err := c.compiled("SELECT id FROM o WHERE r = 123"); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(c.exec("SHOW WARNINGS")), "[Warning 1292 Truncated incorrect double value: ref1]"; len(c.s.Warnings()) < 4 || !strings.Contains(got, want) {
			t.Errorf("warnings of execution %d: %s", i+1, got)
		}
	}
}
