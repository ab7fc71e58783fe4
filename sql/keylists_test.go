package sql

import (
	"fmt"
	"strings"
	"testing"
)

// Lists of keys are encoded without go-mysql-server's ranges, with the same rows as by its plans.
func TestKeyLists(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d",
		"CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(10), n DECIMAL(6,2), u BIGINT UNSIGNED, d DATE, e ENUM('x','y'), p VARCHAR(10), KEY (a, s), KEY (n), UNIQUE KEY (u), KEY (d, a), KEY (e), KEY (p(2)))",
		"CREATE TABLE l (id INT PRIMARY KEY, k INT)", "INSERT INTO l VALUES (1, 3), (2, NULL), (3, 4), (4, 4)",
		"INSERT INTO t VALUES (1, 1, 'a', 1.50, 1, '2024-01-01', 'x', 'abc'), (2, 1, 'A', -2, 2, '2024-01-02', 'y', 'abd'), (3, 2, 'b', 0, 18446744073709551615, CURDATE(), NULL, 'ab'), (4, NULL, 'a', NULL, NULL, NULL, 'x', NULL), (5, 3, NULL, 1.5, 5, '2024-01-01', 'y', 'b')"} {
		c.exec(q)
	}
	for _, q := range []string{
		"id IN (5, 1, 1, 9, -1)", "id IN (1, NULL, 3)", "id IN (NULL)", "id IN (1)", "a IN (1, 2)", "a IN (1, NULL)", "a IN (1, 2, 3) AND s IN ('a', 'b')", "a IN (1, 2) AND s IN ('A', 'a', NULL)",
		"a = 1 AND s IN ('a', 'A')", "a IN (1, 3) AND s = 'a'", "n IN (1.5, 1.50, -2.00)", "n IN (1.505, 0)", "n IN (0, 99999)", "u IN (1, 18446744073709551615)", "u IN (-1, 5)", "d IN ('2024-01-01', '2024-01-02')",
		"d IN ('2024-01-01') AND a IN (1, 3)", "d IN (NOW(), '2024-01-02')", "d = NOW()", "d IN (CURDATE())", "e IN ('x', 'y')", "e IN ('x', 'nosuch')", "p IN ('ab', 'abd')", "a IN (SELECT k FROM l)", "id IN (SELECT k FROM l WHERE k > 9)", "id IN (SELECT k FROM l) AND a IN (2, 3)",
		"id IN (" + chained(6000, "#", ",") + ")", "a IN (" + chained(100, "#", ",") + ") AND s IN (" + chained(100, "'#'", ",") + ", 'b')",
	} {
		for _, tail := range []string{" ORDER BY id", " ORDER BY id LIMIT 2", " ORDER BY a, s, id", " ORDER BY a DESC, id DESC LIMIT 3"} {
			query := "SELECT id, s FROM t WHERE " + q + tail
			want := fmt.Sprint(c.exec(strings.Replace(query, " ", " /*!*/ ", 1)))
			for n := range 3 {
				_, rows, _, err := c.compiled(query)
				if got := fmt.Sprint(rows); err != nil || got != want {
					t.Errorf("execution %d: %.100s%s: %s, %v; want %s", n, query, tail, got, err, want)
				}
			}
		}
	}
}
