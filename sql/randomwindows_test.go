package sql

import (
	"strings"
	"testing"
)

// windowOf makes up a window over a table; isTotal is set if its order is one of all rows.
func (r randomSQL) windowOf(table string, isTotal bool) string {
	var parts []string
	if r.IntN(2) == 0 {
		parts = append(parts, "PARTITION BY "+r.exact(table)+r.one("", ", "+r.exact(table)))
	}
	var by []string
	for range r.IntN(3) {
		by = append(by, r.column(table).name+r.one("", " DESC"))
	}
	if isTotal {
		by = append(by, keysOf[table]...)
	}
	if len(by) == 0 {
		return " OVER (" + strings.Join(parts, " ") + ")"
	}
	return " OVER (" + strings.Join(append(parts, "ORDER BY "+strings.Join(by, ", ")), " ") + ")"
}

// keysOf are the columns by which the rows of a table have one order.
var keysOf = map[string][]string{"a": {"id"}, "b": {"k", "n"}, "c": {"h", "q", "r"}}

// windowFunction makes up a window function over a table.
func (r randomSQL) windowFunction(table string) string {
	column := r.exact(table)
	if r.IntN(2) == 0 {
		function := r.one("RANK()", "DENSE_RANK()", "COUNT(*)", "COUNT(#)", "MIN(#)", "MAX(#)", "SUM(id)", "AVG(g)")
		if table != "a" {
			function = strings.NewReplacer("id", "x", "(g)", "(m)").Replace(function)
		}
		if table == "c" {
			function = strings.NewReplacer("x", "q", "(m)", "(h)").Replace(function)
		}
		return strings.ReplaceAll(function, "#", column) + r.windowOf(table, false)
	}
	function := r.one("ROW_NUMBER()", "LAG(#)", "LEAD(#, 2)", "LAG(#, 1, #)", "FIRST_VALUE(#)", "LAST_VALUE(#)", "PERCENT_RANK()")
	frame := ""
	if strings.Contains(function, "VALUE") {
		frame = r.one("", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
	}
	return strings.ReplaceAll(function, "#", column) + strings.TrimSuffix(r.windowOf(table, true), ")") + frame + ")"
}

// windows makes up a SELECT with window functions, and reports whether its rows have an order.
func (r randomSQL) windows() (text string, isOrdered bool) {
	table := r.one("a", "a", "b", "c")
	list := r.windowFunction(table)
	for range r.IntN(3) {
		list += ", " + r.one(r.windowFunction(table)+r.one("", " AS f", " + 1 AS plus"), r.column(table).name, r.expression(table))
	}
	text = "SELECT " + strings.Join(keysOf[table], ", ") + ", " + list + " FROM " + table + r.where(table)
	if r.IntN(3) == 0 {
		return text, false
	}
	return text + r.order(table), true
}

// Random window functions return the same by our plans as by go-mysql-server's.
func TestEngineRandomWindows(t *testing.T) {
	testRandom(t, 60, 3, func(r randomSQL, p *pair) {
		query, isOrdered := r.windows()
		p.both(query, isOrdered)
		p.both(query, isOrdered)
		p.both(r.redrawn(query), isOrdered)
	})
}

func TestPlannedWindows(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE o (id INT PRIMARY KEY, g INT, s VARCHAR(5), v DECIMAL(6,2), KEY (g))")
	c.exec("CREATE TABLE p (g INT PRIMARY KEY, name VARCHAR(9))")
	c.exec("INSERT INTO o VALUES (1, 1, 'a', 1.5), (2, 1, 'A', 2), (3, 2, 'b', NULL), (4, 1, NULL, 4), (5, 2, 'B', 0.5)")
	c.exec("INSERT INTO p VALUES (1, 'one'), (2, 'two')")
	for query, want := range map[string]string{
		"SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) AS n FROM o WHERE g = 1 ORDER BY id":                                                "[[1 3] [2 2] [4 1]]",
		"SELECT id, RANK() OVER (PARTITION BY g ORDER BY s), DENSE_RANK() OVER (ORDER BY s) FROM o ORDER BY id":                              "[[1 2 2] [2 2 2] [3 1 3] [4 1 1] [5 1 3]]",
		"SELECT id, SUM(v) OVER (PARTITION BY g ORDER BY id), COUNT(v) OVER (), AVG(v) OVER (PARTITION BY g) AS av FROM o ORDER BY id":       "[[1 1.5 4 2.5] [2 3.5 4 2.5] [3 <nil> 4 0.5] [4 7.5 4 2.5] [5 0.5 4 0.5]]",
		"SELECT id, LAG(s) OVER (ORDER BY id), LEAD(s, 2, 'z') OVER (ORDER BY id), FIRST_VALUE(v) OVER (ORDER BY id) AS f FROM o WHERE id<4": "[[1 <nil> b 1.5] [2 a z 1.5] [3 A z 1.5]]",
		"SELECT o.id, p.name, ROW_NUMBER() OVER (PARTITION BY p.name ORDER BY o.id) AS n FROM o JOIN p ON p.g = o.g ORDER BY o.id":           "[[1 one 1] [2 one 2] [3 two 1] [4 one 3] [5 two 2]]",
		"SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC) AS n FROM o) AS d WHERE n = 1 ORDER BY id":            "[[4] [5]]",
		"SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM o ORDER BY id LIMIT 2":                                                              "[[1 1] [2 2]]",
		"SELECT ROW_NUMBER() OVER (ORDER BY id) FROM o WHERE g = 7":                                                                          "[]",
	} {
		if got := c.byOurPlan(t, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
