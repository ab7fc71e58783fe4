package sql

import (
	"fmt"
	"slices"
	"testing"
)

// TestColumnsOfWantedTables: information_schema.columns has the same rows, whether or not conditions let it read fewer
// tables.
func TestColumnsOfWantedTables(t *testing.T) {
	c := newInstance(t).client("d")
	for _, q := range []string{
		"CREATE DATABASE d", "CREATE DATABASE e", "CREATE TABLE e.t (id INT PRIMARY KEY)",
		"CREATE TABLE t (a INT DEFAULT 5, b VARCHAR(20) DEFAULT 'q', d INT DEFAULT (a + 1), c TIMESTAMP DEFAULT CURRENT_TIMESTAMP, g INT AS (a * 2) STORED)",
		"CREATE TABLE u (`sel ect` INT, x INT DEFAULT (`sel ect` + 1), KEY (x))", "CREATE VIEW v AS SELECT a, b FROM t",
	} {
		c.exec(q)
	}
	const all = "SELECT * FROM (SELECT * FROM information_schema.columns LIMIT 100000) c WHERE "
	const some = "SELECT * FROM information_schema.columns c WHERE "
	for where, count := range map[string]int{
		"table_schema = 'd' AND table_name = 't'":                                      5,
		"c.table_schema = DATABASE() AND c.table_name = 'U' ORDER BY ordinal_position": 2,
		"table_schema = 'd'": 9,
		"table_name = 'v'":   2,
		"table_schema IN ('d', 'e') AND table_name IN ('t', 'v')":                                 8,
		"table_schema = 'd' AND table_name LIKE 'u%' AND column_name = 'x'":                       1,
		"(table_schema = 'd' AND table_name = 't') OR (table_schema = 'e' AND table_name = 't')":  6,
		"NOT (table_schema = 'information_schema') AND LOWER(table_name) = 't'":                   6,
		"table_schema = 'd' AND table_name = 't' AND (SELECT COUNT(*) FROM e.t) = 0 AND RAND()<2": 5,
		"table_schema = 'none'": 0,
		"table_schema = NULL":   0,
	} {
		want, got := shownSorted(c, all+where), shownSorted(c, some+where)
		if !slices.Equal(got, want) || len(got) != count {
			t.Errorf("%s: %d rows, want %d:\n%v\nwant\n%v", where, len(got), count, got, want)
		}
	}
	const joined = "SELECT c.table_name, c.column_name, t.table_type FROM information_schema.tables t LEFT JOIN information_schema.columns c " +
		"ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.table_name = 't' WHERE t.table_schema = 'd'"
	if got := len(c.exec(joined)); got != 7 {
		t.Errorf("%d rows of a join, want 7", got)
	}
}

// One table's columns cost a fraction of what all columns do.
func TestColumnsOfOneTableAreCheap(t *testing.T) {
	c := newInstance(t).client("d")
	c.exec("CREATE DATABASE d")
	c.exec("CREATE TABLE t (a INT DEFAULT 5)")
	cost := func(where string) float64 {
		return testing.AllocsPerRun(5, func() { c.exec("SELECT column_name FROM information_schema.columns WHERE " + where) })
	}
	one, all := cost("table_schema = 'd' AND table_name = 't'"), cost("CONCAT(table_schema) = 'd' AND CONCAT(table_name) = 't'")
	if one > all/4 {
		t.Errorf("one table takes %v allocations, all take %v", one, all)
	}
}

func shownSorted(c *client, query string) (rows []string) {
	for _, r := range c.exec(query) {
		rows = append(rows, fmt.Sprint(r))
	}
	slices.Sort(rows)
	return rows
}
