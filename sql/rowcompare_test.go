package sql

import (
	"fmt"
	"strings"
	"testing"
)

// TestComparedRows: comparisons of rows find what the comparisons of their columns find that they mean, NULL among
// them, and use an index of the columns.
func TestComparedRows(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(5), KEY (a, b))")
	for i := range 64 {
		part := func(n int, text string) string {
			if n%4 == 3 {
				return "NULL"
			}
			return fmt.Sprintf(text, n%4)
		}
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d, %s, %s, %s)", i, part(i, "%d"), part(i/4, "%d"), part(i/16, "'x%d'")))
	}
	for op, strict := range map[string]string{"<": "<", "<=": "<", ">": ">", ">=": ">"} {
		two := fmt.Sprintf("a %s 1 OR a = 1 AND b %s 1", strict, op)
		three := fmt.Sprintf("a %[1]s 1 OR a = 1 AND (b %[1]s 1 OR b = 1 AND c %[2]s 'X1')", strict, op)
		for _, q := range [][2]string{
			{"(a, b) " + op + " (1, 1)", two}, {"(a, b, c) " + op + " (1, 1, 'X1')", three}, {"NOT (a, b) " + op + " (1, 1)", "NOT (" + two + ")"},
			{"((a, b) " + op + " (1, 1)) IS NULL", "(" + two + ") IS NULL"}, {"(a, b) " + op + " (1, NULL)", fmt.Sprintf("a %s 1 OR a = 1 AND b %s NULL", strict, op)},
		} {
			got, want := c.shown("SELECT id FROM t WHERE "+q[0]+" ORDER BY id"), c.shown("SELECT id FROM t WHERE "+q[1]+" ORDER BY id")
			if got != want {
				t.Errorf("%s: got %q, want %q", q[0], got, want)
			}
			c.exec("PREPARE s FROM 'SELECT id FROM t WHERE " + strings.ReplaceAll(q[0], "'", "''") + " ORDER BY id'")
			if got := c.shown("EXECUTE s"); got != want {
				t.Errorf("prepared, %s: got %q, want %q", q[0], got, want)
			}
		}
	}
	c.exec("UPDATE t SET c = 'found' WHERE (a, b) >= (2, 1)") // not (NULL, ...)
	if got := c.shown("SELECT COUNT(*), MIN(a), MIN(b) FROM t WHERE c = 'found'"); got != "8 | 2 | 1\n" {
		t.Errorf("changed %q", got)
	}
	c.exec("DELETE FROM t WHERE (a, b) > (2, 1)")
	if got := c.shown("SELECT COUNT(*), MAX(b) FROM t WHERE a = 2"); got != "12 | 1\n" {
		t.Errorf("left %q", got)
	}
	if got := c.shown("SELECT (1, 2) < (1, 3), (NULL, 2) > (1, 1), (1, NULL) >= (1, 1), (2, NULL) > (1, 1), (1, 2) > (RAND() * 0 + 1, 1)"); got != "1 | NULL | NULL | 1 | 1\n" {
		t.Errorf("got %q", got)
	}
	if plan := c.shown("EXPLAIN SELECT id FROM t WHERE (a, b) > (2, 1)"); !strings.Contains(plan, "range") {
		t.Errorf("no index: %s", plan)
	}
}

// TestComparedRowsByPlans: plans of our own find what go-mysql-server finds.
func TestComparedRowsByPlans(t *testing.T) {
	p := newPair(t)
	p.create()
	for _, q := range []string{
		"SELECT id, k FROM t WHERE (k, id) > (%d, %d) ORDER BY k, id LIMIT 5", "SELECT id, k FROM t WHERE (k, id) <= (%d, %d) ORDER BY k DESC, id DESC LIMIT 5",
		"SELECT id, k FROM t WHERE (k, id) >= (%d, %d) AND pad IS NULL ORDER BY k, id", "SELECT x, y, id FROM p WHERE (x, y, id) < (1, %d, %d) ORDER BY x, y, id",
		"UPDATE p SET x = x + 1 WHERE (y, id) > (%d, %d) ORDER BY id DESC LIMIT 2",
	} {
		for i := range 8 {
			p.run(fmt.Sprintf(q, i, 5*i))
		}
	}
	p.same("t", "p")
}
