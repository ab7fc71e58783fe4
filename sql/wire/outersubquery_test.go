package wire

import "testing"

// TestSubqueryInOn: an equality with a correlated subquery in the ON of an outer join holds for both sides' rows.
func TestSubqueryInOn(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, c INT, g INT)", "INSERT INTO t VALUES (0, NULL, 1), (1, 1, 2), (2, 1, 3), (4, 2, 1)"} {
		seen(c, q)
	}
	for on, want := range map[string]string{
		"1 = (SELECT COUNT(*) FROM t z WHERE z.c = x.c)":       "[0 NULL] [1 NULL] [2 NULL] [4 0] [4 4]",
		"(SELECT COUNT(*) FROM t z WHERE z.c = x.c) = 1":       "[0 NULL] [1 NULL] [2 NULL] [4 0] [4 4]",
		"1 = (SELECT COUNT(*) FROM t z WHERE z.c = y.c)":       "[0 4] [1 NULL] [2 NULL] [4 4]",
		"(SELECT COUNT(*) FROM t z WHERE z.c = y.c) = 1":       "[0 4] [1 NULL] [2 NULL] [4 4]",
		"x.id = (SELECT z.id FROM t z WHERE z.id = y.id)":      "[0 0] [1 1] [2 2] [4 4]",
		"y.id = (SELECT MAX(z.id) FROM t z WHERE z.id <= x.g)": "[0 NULL] [1 NULL] [2 2] [4 NULL]",
		"x.id = (SELECT MAX(z.id) FROM t z WHERE z.g = x.g)":   "[0 NULL] [1 1] [2 2] [4 0] [4 4]",
	} {
		for _, query := range []string{
			"SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.g = y.g AND " + on + " ORDER BY 1, 2",
			"SELECT x.id, y.id FROM t y RIGHT JOIN t x ON " + on + " AND x.g = y.g ORDER BY 1, 2",
		} {
			for range 3 {
				if got := rowsSeen(seen(c, query)); got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
		}
	}
}
