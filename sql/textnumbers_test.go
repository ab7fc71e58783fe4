package sql

import (
	"fmt"
	"slices"
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

// Texts are compared with whole numbers by plans as go-mysql-server compares them, with the same warnings.
func TestTextNumbersByPlan(t *testing.T) {
	p := newPair(t)
	for _, q := range []string{
		"CREATE TABLE x (id INT PRIMARY KEY, s VARCHAR(40), c CHAR(10) NOT NULL, long_one TEXT, b VARCHAR(10) COLLATE utf8mb4_bin, n INT, KEY (s), KEY (n), UNIQUE KEY (c))",
		`INSERT INTO x VALUES (1, '123', 'a', '123', '5', 1), (2, 'abc', '123', NULL, 'x', 1), (3, NULL, '', '', '5 ', 2), (4, ' 123 ', '1e2', '12.5x', NULL, 2), (5, '123abc', '-7', '7', '-5', 3), (6, '', '0', '0', '', 3),
			(7, '1.23e2', 'é', 'x', '+5', 4), (8, '0123', '.5', '-', '5e0', 4), (9, '1e999', 'zz', '1e-400', '5.0', NULL), (10, '9223372036854775807', '9', '9', '9', NULL)`,
		"CREATE TABLE bare (id INT PRIMARY KEY, s VARCHAR(40))",
		"SET sql_notes = 1",
	} {
		p.run(q)
	}
	queries := []string{
		"SELECT id FROM x WHERE s = 123", "SELECT id, s FROM x WHERE s <> 123", "SELECT * FROM x WHERE c = 0", "SELECT id FROM x WHERE c < 100", "SELECT id FROM x WHERE c >= -7", "SELECT id FROM x WHERE 5 = b", "SELECT id FROM x WHERE b = -5",
		"SELECT long_one FROM x WHERE long_one = 7", "SELECT COUNT(*) FROM x WHERE s = 123", "SELECT COUNT(*) FROM x WHERE c = 0", "SELECT MAX(id), MIN(s) FROM x WHERE s = 123", "SELECT id FROM x WHERE s = 9223372036854775807",
		"SELECT n, COUNT(*) FROM x WHERE c = 0 GROUP BY n", "SELECT id FROM x WHERE s = 123 ORDER BY id DESC", "SELECT id FROM x WHERE s = 123 ORDER BY n, id", "SELECT id FROM x WHERE c = 0 ORDER BY c, id LIMIT 2", "SELECT id FROM x WHERE s = 123 FOR UPDATE",
		"SELECT id FROM bare WHERE s = 1", "SELECT COUNT(*) FROM bare WHERE s = 1",
	}
	for range 3 {
		for _, q := range queries {
			p.run(q)
			p.sameWarnings(q)
		}
	}
	for _, q := range queries {
		if p.run(q); !p.compiled.byPlan {
			t.Errorf("no plan: %s", q)
		}
	}
	for range 3 { // their warnings are another number, or errors
		for _, q := range []string{
			"SELECT id FROM x WHERE s = 123 AND n = 1", "SELECT id FROM x WHERE s IN (123, 5)", "SELECT a.id FROM x a JOIN x b ON a.n = b.n WHERE a.s = 123 ORDER BY 1", "SELECT id FROM x WHERE id IN (SELECT n FROM x WHERE s = 123)", "UPDATE x SET n = 1 WHERE s = 123", "DELETE FROM x WHERE s = 123",
			"SELECT id FROM x WHERE s = 123 UNION SELECT n FROM x WHERE c = 0", "SELECT id FROM x WHERE s = 1.5", "SELECT id FROM x WHERE s = '123'", "SELECT id FROM x WHERE s = 123 LIMIT 1", "SELECT id FROM x WHERE s = 123 ORDER BY id LIMIT 1",
			"SELECT id, c + 1 FROM x WHERE s = 123",
		} {
			p.run(q)
			p.sameWarnings(q)
		}
	}
	p.run("SET max_error_count = 2")
	for range 2 {
		p.run("SELECT id FROM x WHERE s = 123 ORDER BY id")
	}
	p.run("INSERT INTO x (id, s, c) VALUES (20, '123', 'new')")
	for _, c := range []*client{p.compiled, p.gms} { // text and number of one statement take turns
		if rows := c.exec("SELECT id FROM x WHERE s = '123'"); fmt.Sprint(rows) != "[[1] [20]]" { // the DELETE was an error
			t.Errorf("%v", rows)
		}
	}
	p.same("x")
}

// sameWarnings compares the warnings of both sessions. Their order is that in which rows were read.
func (p *pair) sameWarnings(query string) {
	p.t.Helper()
	texts := func(c *client) (all []string) {
		for _, w := range c.s.Warnings() {
			all = append(all, fmt.Sprint(w.Level, w.Code, w.Message))
		}
		slices.Sort(all)
		return all
	}
	if got, want := texts(p.compiled), texts(p.gms); !slices.Equal(got, want) {
		p.t.Errorf("%s: warnings\n%q\nwant\n%q", query, got, want)
	}
}
