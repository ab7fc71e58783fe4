package sql

import (
	"fmt"
	"testing"
)

// A statement has a plan in each form in which programs write it: with comments and hints, strings in double quotes,
// USING and NATURAL joins, numbers in base 16. The plan returns what the first execution, by go-mysql-server, does.
func TestFormsHavePlans(t *testing.T) {
	c := subqueryTables(t)
	c.exec("CREATE TABLE b (id VARBINARY(16) PRIMARY KEY, n INT)")
	c.exec("INSERT INTO b VALUES (X'0102', 1), (X'0304', 2), ('102', 3)")
	for _, query := range []string{
		"SELECT /* request 1 */ id FROM t WHERE k > 5 AND id < 9", "SELECT id /* it is */ FROM t -- line\n WHERE k > 5 # more\n AND id < 9", "SELECT id FROM t WHERE k > 5 AND id < 9 -- last",
		"SELECT /*+ NO_RANGE_OPTIMIZATION(t) */ id FROM t WHERE k > 5 AND id < 9", "SELECT SQL_NO_CACHE id FROM t WHERE k > 5 AND id < 9", "SELECT ALL id FROM t WHERE k > 5 AND id < 9",
		"SELECT STRAIGHT_JOIN t.id, o.id FROM t, o WHERE o.t = t.id AND t.k > 2", "SELECT t.id, o.id FROM t STRAIGHT_JOIN o ON o.t = t.id WHERE t.k > 2",
		"SELECT id, t.k, o.d FROM t JOIN o USING (id) WHERE k > 1", "SELECT * FROM t JOIN o USING (id) WHERE k > 1", "SELECT * FROM t LEFT JOIN o USING (id) WHERE k > 3 AND id < 9", "SELECT * FROM o RIGHT JOIN t USING (id, s) WHERE id < 5",
		"SELECT * FROM t NATURAL JOIN o", "SELECT id, d FROM t NATURAL LEFT JOIN o WHERE id < 5",
		"SELECT id FROM t FORCE INDEX (k) WHERE k > 5 AND id < 9", "SELECT id FROM t USE INDEX (PRIMARY) WHERE k > 5 AND id < 9", "SELECT id FROM t IGNORE KEY FOR ORDER BY (k) USE INDEX () WHERE k > 5 AND id < 9 ORDER BY k, id",
		`SELECT id FROM t WHERE s = "s1" AND pad = 'p' AND id < 9`, `SELECT id FROM t WHERE s = "it's" OR s = "say ""s""" OR s = "s2" AND id < 9`, `SELECT "x""y" AS a, 'it''s' AS b, id FROM t WHERE id < 3 AND k >= 0`,
		"SELECT n FROM b WHERE id IN (0x102, X'0304') AND n > 0",
	} {
		want := c.exec(query)
		if got := c.mustByPlan(t, query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, before %v", query, got, want)
		}
	}
	for _, query := range []string{"UPDATE /* a */ t SET pad = \"q\" WHERE k > 8 AND id < 20", "DELETE /* b */ FROM t WHERE k > 8 AND id < 20", "INSERT /* c */ INTO t SELECT id + 1000, k, s, pad FROM t WHERE k = 9 AND id < 30"} {
		for range 3 {
			c.exec("BEGIN")
			_, _, _, err := c.compiled(query)
			if c.exec("ROLLBACK"); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
		}
		if !c.byPlan {
			t.Errorf("not by a plan: %s", query)
		}
	}
}

// Two statements that differ in a comment behind the first word have one plan.
func TestTracedStatements(t *testing.T) {
	c := engineTable(t)
	const query = "SELECT /* trace %d */ id FROM t WHERE k > 5 AND id < 9 /* %[1]d */"
	for i := range 3 {
		_, rows, _, err := c.compiled(fmt.Sprintf(query, i))
		if err != nil || fmt.Sprint(rows) != "[[6] [7] [8]]" {
			t.Fatalf("%v %v", rows, err)
		}
	}
	if !c.byPlan {
		t.Error("no plan of the statement before")
	}
}

// -- begins a comment only before a space.
func TestDoubleMinus(t *testing.T) {
	c := engineTable(t)
	for _, test := range []struct{ query, want string }{
		{"SELECT 5--3", "[[8]]"}, {"SELECT 5--3 -- 4", "[[8]]"}, {"SELECT 5---3", "[[2]]"}, {"SELECT 5 --\n+ 1", "[[6]]"}, {"SELECT '--x', 1 --1", "[[--x 2]]"}, {"SELECT id--1 FROM t WHERE id=3--2", "[[6]]"},
		{"SELECT /*--x*/ 5 # --y\n--3", "[[8]]"},
	} {
		for range 3 {
			if rows := c.exec(test.query); fmt.Sprint(rows) != test.want {
				t.Errorf("%s: %v, want %s", test.query, rows, test.want)
			}
		}
	}
}
