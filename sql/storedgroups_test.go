package sql

import (
	"fmt"
	"strings"
	"testing"
)

// Groups that are made of stored rows are those that go-mysql-server makes: of NULLs, of texts that a collation takes for
// equal, of numbers at their limits, in transactions with changes of their own, too.
func TestStoredGroups(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d",
		"CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(10), b VARCHAR(10) COLLATE utf8mb4_bin, n DECIMAL(6,2), w DECIMAL(40,2), u INT UNSIGNED, x BIGINT UNSIGNED, d DATE, e ENUM('x','y'), f DOUBLE, ts TIMESTAMP NULL, big BIGINT, l TEXT, KEY (a))",
		"CREATE TABLE o (id INT PRIMARY KEY, t INT, KEY (t))", "INSERT INTO o VALUES (1, 1), (2, 1), (3, 2)"} {
		c.exec(q)
	}
	long := strings.Repeat("long ", 3000)
	rows := []string{
		"(1, 1, 'a', 'a', 1.50, 1.5, 1, 1, '2024-01-01', 'x', 1.5, '2024-01-01', 9223372036854775807, '" + long + "')", "(2, 1, 'A', 'A', -2, 2, 4294967295, 18446744073709551615, '2024-01-01', 'y', 2, NULL, 9223372036854775807, '" + long + "')",
		"(3, NULL, 'ä', 'ä', 0, 123456789012345678901234567890, 0, 0, NULL, NULL, 0, NULL, -9223372036854775808, NULL)", "(4, 2, NULL, NULL, NULL, NULL, NULL, NULL, '2024-01-02', 'x', NULL, NULL, NULL, 'short')",
		"(5, 2, '', '', 9999.99, 0, 5, 5, '2024-01-02', 'x', -1, NULL, 1, '')", "(6, 0, 'b ', 'b ', -9999.99, 0.25, 5, 5, '1000-01-01', 'y', -1, NULL, 1, 'SHORT')", "(7, 0, 'b', 'b', 0.01, 0.25, 5, 5, '1000-01-01', 'y', -1, NULL, 1, 'SHORT')",
	}
	compare := func(when string) {
		t.Helper()
		for _, what := range []string{"COUNT(*)", "COUNT(a), COUNT(s), COUNT(1)", "SUM(a), AVG(a), SUM(u), AVG(u)", "SUM(n), AVG(n)", "SUM(big), AVG(big)", "SUM(w)", "SUM(x)", "SUM(f), COUNT(*)", "COUNT(DISTINCT a), COUNT(DISTINCT s), COUNT(DISTINCT b)", "COUNT(DISTINCT n), COUNT(DISTINCT d)", "COUNT(DISTINCT a, s)",
			"MIN(a), COUNT(*)", "SUM(DISTINCT a)", "SUM(a + 1), COUNT(*)", "COUNT(DISTINCT l), COUNT(l)"} {
			for _, by := range []string{"", "a", "s", "b", "n", "w", "ts", "f", "d, e, u", "l", "a + 1"} {
				for _, where := range []string{"", " WHERE a IN (1, 2)", " WHERE id > 100"} {
					q := "SELECT " + what + " FROM t" + where
					if by != "" {
						q = "SELECT " + by + ", " + what + " FROM t" + where + " GROUP BY " + by + " ORDER BY " + by
					}
					want := fmt.Sprint(c.exec(strings.Replace(q, " ", " /*!*/ ", 1)))
					for n := range 3 {
						_, rows, _, err := c.compiled(q)
						if got := fmt.Sprint(rows); err != nil || got != want {
							t.Fatalf("%s, execution %d: %s: %.500s, %v; want %.500s", when, n, q, got, err, want)
						}
					}
				}
			}
		}
	}
	compare("without rows")
	for _, r := range rows {
		c.exec("INSERT INTO t VALUES " + r)
	}
	compare("with rows")
	for _, q := range []string{"BEGIN", "UPDATE t SET a = 7, s = 'own' WHERE id IN (1, 5)", "DELETE FROM t WHERE id = 2", "INSERT INTO t (id, a, s) VALUES (8, 7, 'OWN')"} {
		c.exec(q)
	}
	compare("in a transaction")
	c.exec("ROLLBACK")
	for _, q := range []string{
		"SELECT a, COUNT(*) n FROM t GROUP BY a HAVING n > 1 ORDER BY n DESC, a LIMIT 2", "SELECT s, SUM(n) FROM t GROUP BY s HAVING SUM(n) > 0 ORDER BY 2 DESC, 1", "SELECT id, (SELECT COUNT(DISTINCT t) FROM o WHERE o.t = t.a) FROM t ORDER BY id",
		"SELECT id, (SELECT SUM(o.id) FROM o WHERE o.t = t.a) FROM t ORDER BY id", "SELECT * FROM (SELECT a, COUNT(*) n FROM t GROUP BY a) x JOIN o ON o.t = x.a ORDER BY o.id", "SELECT id FROM o WHERE t IN (SELECT a FROM t GROUP BY a HAVING COUNT(*) > 1) ORDER BY id",
		"SELECT a FROM t GROUP BY a ORDER BY a LIMIT 1 OFFSET 1", "SELECT DISTINCT COUNT(*) FROM t GROUP BY a ORDER BY 1",
	} {
		want := fmt.Sprint(c.exec(strings.Replace(q, " ", " /*!*/ ", 1)))
		for range 3 {
			if _, rows, _, err := c.compiled(q); err != nil || fmt.Sprint(rows) != want {
				t.Errorf("%s: %v, %v; want %s", q, rows, err, want)
			}
		}
	}
}
