package sql

import (
	"fmt"
	"strings"
	"testing"
)

// TestTotals: sums of stored rows are those that go-mysql-server adds up, also where a number is too large for an integer.
func TestTotals(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d",
		"CREATE TABLE t (id INT PRIMARY KEY, g VARCHAR(5), h CHAR(3), day DATE, d DECIMAL(10,2), e DECIMAL(6,4), i BIGINT, u BIGINT UNSIGNED, w DECIMAL(40,20), f DOUBLE, KEY (d))",
		"CREATE TABLE none (id INT PRIMARY KEY, d DECIMAL(10,2))"} {
		c.exec(q)
	}
	var rows []string
	for i := range 60 {
		switch i % 6 {
		case 0:
			rows = append(rows, fmt.Sprintf("(%d, 'a', 'x', '2024-01-%02d', %d.25, -0.0%d, %d, %d, %d.5, 0.5)", i, 1+i%3, i*1000, i, -i, i, i))
		case 1:
			rows = append(rows, fmt.Sprintf("(%d, 'A', NULL, NULL, -%d.75, 12.5, %d, 0, 99999999999999999999.12345678901234567890, 1.5)", i, i, i))
		case 2:
			rows = append(rows, fmt.Sprintf("(%d, NULL, 'X', '2024-01-01', NULL, NULL, NULL, NULL, NULL, NULL)", i))
		case 3:
			rows = append(rows, fmt.Sprintf("(%d, 'b', '', '2024-02-01', 99999999.99, 99.9999, 9223372036854775807, 18446744073709551615, 1, 2)", i))
		default:
			rows = append(rows, fmt.Sprintf("(%d, 'B', 'y', '2024-02-01', 0, 0.5, -9223372036854775808, 5, 0, 0)", i))
		}
	}
	c.exec("INSERT INTO t VALUES " + strings.Join(rows, ", "))
	queries := []string{
		"SELECT SUM(d), AVG(d), SUM(e), AVG(e), COUNT(d), COUNT(*) FROM t",
		"SELECT g, SUM(d), SUM(d * (1 - e)), SUM(d * (1 - e) * (1 + e)), AVG(e), COUNT(*) FROM t GROUP BY g ORDER BY g",
		"SELECT g, h, day, SUM(d + e), SUM(d - 1.5), COUNT(h) FROM t GROUP BY g, h, day ORDER BY g, h, day",
		"SELECT SUM(d * 2.50), SUM(2 - e), SUM(e * e * e) FROM t WHERE id > 3",
		"SELECT SUM(i), AVG(i) FROM t WHERE g = 'a'",
		"SELECT SUM(i), SUM(u), AVG(u) FROM t",                            // 18446744073709551615 is no int64
		"SELECT g, SUM(i) FROM t GROUP BY g ORDER BY g",                   // the sum is beyond BIGINT
		"SELECT SUM(w), AVG(w) FROM t",                                    // stored in more than eight bytes
		"SELECT SUM(d * e * d * e * d) FROM t",                            // a product that does not fit
		"SELECT SUM(f), SUM(d), AVG(f) FROM t",                            // doubles
		"SELECT SUM(d), MAX(d), COUNT(DISTINCT g) FROM t",                 // other aggregates
		"SELECT SUM(d), AVG(d), COUNT(*), COUNT(d) FROM none",             // no rows
		"SELECT id, SUM(d) FROM none GROUP BY id",                         // no groups
		"SELECT SUM(d), COUNT(*) FROM t WHERE d IN (0, 250.25) OR id = 7", // several ranges of an index, and a row
		"SELECT g, SUM(d) AS s FROM t GROUP BY g HAVING s > 100 ORDER BY s",
		"SELECT AVG(d) + 1, SUM(e) / 3 FROM t WHERE id < 20",
		"SELECT o.id, (SELECT SUM(d) FROM t WHERE t.id < o.id) FROM t o WHERE o.id < 4 ORDER BY o.id",
	}
	check := func() {
		t.Helper()
		for _, query := range queries {
			schema, rows, err := c.run(query)
			if err != nil {
				t.Fatal(err)
			}
			want := c.show(schema, rows)
			for range 2 {
				got, rows, _, err := c.compiled(query)
				if text := c.show(got, rows); err != nil || text != want {
					t.Errorf("%s: %s, want %s (%v)", query, text, want, err)
				}
			}
			if !c.byPlan {
				t.Errorf("no plan of ours: %s", query)
			}
		}
	}
	check()
	c.exec("BEGIN")
	c.exec("INSERT INTO t (id, g, d, e) VALUES (1000, 'a', 0.01, 1), (1001, 'c', 5, NULL)")
	c.exec("DELETE FROM t WHERE id < 6")
	c.exec("INSERT INTO none VALUES (1, NULL), (2, NULL)")
	check()
	c.exec("ROLLBACK")
}

// The memory of groups is counted, and given back.
func TestTotalsMemory(t *testing.T) {
	m := boundedMemory(3<<20, 1<<40)
	c := openBounded(t, m)
	c.exec("CREATE TABLE g (id INT PRIMARY KEY, d DECIMAL(8,2))")
	c.insertNumbers("g", 3000)
	c.s.Settle()
	for _, query := range []string{"SELECT id, SUM(d) FROM g WHERE d > 0 GROUP BY id", "SELECT COUNT(*) FROM (SELECT id, SUM(d) FROM g GROUP BY id) x"} {
		for range 3 {
			if _, _, _, err := c.compiled(query); err != nil {
				t.Error(err)
			}
			c.s.Settle()
			if n := m.Used(); n != 0 {
				t.Fatalf("%s: %d bytes are still held", query, n)
			}
		}
	}
}
