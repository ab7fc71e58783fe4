package wire

import (
	"fmt"
	"testing"
)

// TestMixedIn: IN of a subquery whose column has another type means what = means, among the columns and in WHERE, at each
// execution. The answers are MariaDB's.
func TestMixedIn(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('b','a','c'), g INT, n INT, s VARCHAR(10), d DATE, st SET('x','y'), tm TIME)",
		`INSERT INTO t VALUES (1, 'a', 1, 0, 'a', '2026-01-01', 'x', '10:00:00'), (2, 'b', 1, 1, '1', '2026-01-02', 'y', NULL), (3, 'c', 2, 2, '2x', NULL, 'x,y', '00:00:01'),
			(4, NULL, 2, NULL, NULL, NULL, NULL, NULL), (5, 'a', 3, 3, '10', '2026-03-03', '', '00:00:10')`} {
		seen(c, q)
	}
	for _, in := range []struct {
		condition string
		is        [5]string // its values for the rows
	}{
		{"n IN (SELECT s FROM t)", [5]string{"1", "1", "1", "NULL", "NULL"}},
		{"s IN (SELECT n FROM t)", [5]string{"1", "1", "1", "NULL", "NULL"}},
		{"s NOT IN (SELECT n FROM t WHERE n IS NOT NULL)", [5]string{"0", "0", "0", "NULL", "1"}},
		{"s = ANY (SELECT n FROM t)", [5]string{"1", "1", "1", "NULL", "NULL"}},
		{"'a' <> ALL (SELECT n FROM t WHERE n = id - 1)", [5]string{"0", "0", "0", "0", "0"}},
		{"g IN (SELECT CONCAT(g, 'x') FROM t)", [5]string{"1", "1", "1", "1", "1"}},
		{"s IN (SELECT n FROM t WHERE id > 9)", [5]string{"0", "0", "0", "0", "0"}},
		{"d IN (SELECT '2026-01-01')", [5]string{"1", "0", "NULL", "NULL", "0"}},
		{"tm IN (SELECT '10:00')", [5]string{"1", "NULL", "0", "NULL", "0"}},
		{"n IN (SELECT e FROM t)", [5]string{"NULL", "1", "1", "NULL", "1"}},
		{"e IN (SELECT MIN(e) FROM t GROUP BY g)", [5]string{"1", "0", "1", "NULL", "1"}},
		{"e NOT IN (SELECT MIN(e) FROM t GROUP BY g)", [5]string{"0", "1", "0", "NULL", "0"}},
		{"e = (SELECT MAX(e) FROM t)", [5]string{"0", "0", "1", "NULL", "0"}},
		{"st IN (SELECT MIN(st) FROM t GROUP BY g)", [5]string{"1", "0", "1", "NULL", "1"}},
	} {
		want, found := "", ""
		for i, v := range in.is {
			want += fmt.Sprintf("[%d %s] ", i+1, v)
			if v == "1" {
				found += fmt.Sprintf("[%d] ", i+1)
			}
		}
		for range 3 {
			if got := rowsSeen(seen(c, "SELECT id, "+in.condition+" FROM t ORDER BY id")) + " "; got != want {
				t.Errorf("%s is %s, want %s", in.condition, got, want)
			}
			if got := rowsSeen(seen(c, "SELECT id FROM t WHERE "+in.condition+" ORDER BY id")); got+" " != found && got != found {
				t.Errorf("WHERE %s finds %s, want %s", in.condition, got, found)
			}
		}
	}
}

// TestLeastElement: MIN and MAX of an ENUM or SET compare texts, and are of its type.
func TestLeastElement(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('b','a','c'), g INT, KEY (e))",
		"INSERT INTO t VALUES (1, 'b', 1), (2, 'a', 1), (3, 'c', 2), (4, NULL, 3)"} {
		seen(c, q)
	}
	for query, want := range map[string]string{
		"SELECT MIN(e) + 0, MAX(e) + 0 FROM t":                                              "[2 3]",
		"SELECT m FROM (SELECT MIN(e) m FROM t GROUP BY g) q WHERE m = 2":                   "[a]",
		"SELECT CONCAT(MIN(e), MAX(e)) FROM t WHERE g = 1":                                  "[ab]",
		"SELECT id, MIN(e) OVER (ORDER BY id) FROM t WHERE g = 1 ORDER BY id":               "[1 b] [2 a]",
		"SELECT g FROM t GROUP BY g HAVING MIN(e) > 'a'":                                    "[2]",
		"SELECT t.id FROM t JOIN (SELECT MIN(e) m FROM t GROUP BY g) q ON m = e ORDER BY 1": "[2] [3]",
	} {
		for range 3 {
			if got := rowsSeen(seen(c, query)); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
	}
}

// TestOneRowBesideNotIn: a subquery of several rows beside a NOT IN that may be NULL is an error, as it is without it.
func TestOneRowBesideNotIn(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 5), (2, 6)"} {
		seen(c, q)
	}
	for range 3 {
		if got := seen(c, "SELECT id FROM t WHERE n = (SELECT n FROM t) AND id NOT IN (SELECT n FROM t)"); got[:20] != "Subquery returns mor" {
			t.Error(got)
		}
	}
}
