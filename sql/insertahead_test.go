package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// tuples is n rows of VALUES: those of the numbers from lo on, each step above the one before.
func tuples(lo, n, step int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "%", fmt.Sprint(lo+i*step))
	}
	return strings.Join(all, ", ")
}

// TestInsertsOfAnotherMachine: an INSERT of 100 rows into a table of another machine waits for that
// machine some ten times, and not for each row.
func TestInsertsOfAnotherMachine(t *testing.T) {
	onA, onB, m := twoClients(t)
	onA.exec("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(60))")
	onA.exec("CREATE TABLE u (id INT PRIMARY KEY, u VARCHAR(20) NOT NULL UNIQUE, k INT, KEY (k))")
	onA.exec("CREATE TABLE h (id INT, v INT, PRIMARY KEY (id) USING HASH)")
	onA.exec("CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, u INT NOT NULL UNIQUE)")
	for _, values := range []string{"t VALUES " + tuples(0, 500, 100, "(%, 'row %')"), "u VALUES " + tuples(0, 500, 100, "(%, 'u%', %)"), "h VALUES " + tuples(0, 500, 100, "(%, %)"), "a VALUES " + tuples(1, 500, 100, "(%, %)")} {
		onA.exec("INSERT INTO " + values)
	}
	next := 0 // the round, by which keys differ
	trips := func(query func(lo int) string) uint64 {
		t.Helper()
		least := uint64(math.MaxUint64)
		for range 5 {
			next++
			before := m.Stats()
			onB.exec(query(next))
			least = min(least, m.Stats().Sub(before).RoundTrips)
		}
		return least
	}
	one := trips(func(lo int) string { return fmt.Sprintf("INSERT INTO t VALUES (%d, 'one')", 100_000+lo) })
	for name, test := range map[string]struct {
		query string
		rows  func(lo int) string
		most  uint64 // beyond an INSERT of one row
	}{
		"neighbours":    {"INSERT INTO t VALUES %", func(lo int) string { return tuples(200_000+100*lo, 100, 1, "(%, 'new')") }, 8},
		"far apart":     {"INSERT INTO t VALUES %", func(lo int) string { return tuples(lo, 100, 500, "(%, 'new')") }, 8},
		"three indexes": {"INSERT INTO u VALUES %", func(lo int) string { return tuples(lo, 100, 500, "(%, 'u%', %)") }, 16},
		"hash":          {"INSERT INTO h VALUES %", func(lo int) string { return tuples(lo, 100, 500, "(%, %)") }, 8},
		"ignored":       {"INSERT IGNORE INTO t VALUES %", func(lo int) string { return tuples(lo%2, 100, 100, "(%, 'old')") }, 8},
		"replaced":      {"REPLACE INTO t VALUES %", func(lo int) string { return tuples(0, 100, 100, fmt.Sprintf("(%%, 'new %d')", lo)) }, 8},
		"updated":       {"INSERT INTO t VALUES % ON DUPLICATE KEY UPDATE v = CONCAT(v, '!')", func(lo int) string { return tuples(0, 100, 100, "(%, 'old')") }, 8},
		"numbers given": {"INSERT INTO a VALUES %", func(lo int) string { return tuples(1+lo, 100, 500, "(%, %)") }, 12},
	} {
		if n := trips(func(lo int) string { return strings.Replace(test.query, "%", test.rows(lo), 1) }); n > one+test.most {
			t.Errorf("%s: %d round trips, and %d of an INSERT of one row", name, n, one)
		}
	}
}

// TestInsertsAhead compares INSERTs into tables of another machine, whose keys are looked up together,
// with the same into tables of the client's own: rows that are there already, that fail and that are
// given by other types, generated numbers and columns, triggers, and changes of the transaction itself.
func TestInsertsAhead(t *testing.T) {
	near, far := twoMachines(t)
	near.client("").exec("CREATE DATABASE d1")
	far.client("").exec("CREATE DATABASE d2")
	creators := []*client{near.client("d1"), far.client("d2")}
	clients := []*client{far.client("d1"), far.client("d2")}
	for _, c := range creators {
		for _, create := range []string{
			"TABLE t (id INT PRIMARY KEY, u VARCHAR(10) COLLATE utf8mb4_0900_ai_ci, a INT, n DECIMAL(8,2) DEFAULT 1.5, UNIQUE KEY (u), KEY (a))",
			"TABLE h (id BIGINT, u INT, v INT, PRIMARY KEY (id) USING HASH, UNIQUE KEY (u) USING HASH)",
			"TABLE auto (id INT PRIMARY KEY AUTO_INCREMENT, u INT UNIQUE, v VARCHAR(20) DEFAULT 'x')",
			"TABLE keyless (a INT, u INT UNIQUE, KEY (a))",
			"TABLE kinds (d DATE, e ENUM('x', 'y', 'z'), b VARBINARY(4), c CHAR(4), PRIMARY KEY (d, e), UNIQUE KEY (b), KEY (c(2)))",
			"TABLE gen (id INT PRIMARY KEY, a INT, g INT GENERATED ALWAYS AS (a + 1) STORED, w INT AS (a * 2), UNIQUE KEY (g), KEY (w))",
			"TABLE noted (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(100))",
			"TABLE changed (id INT PRIMARY KEY, v INT)",
			"TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id))",
			"TRIGGER before_changed BEFORE INSERT ON changed FOR EACH ROW SET NEW.id = NEW.id + 1000",
			"TRIGGER after_changed AFTER INSERT ON changed FOR EACH ROW INSERT INTO noted (what) VALUES (CONCAT('changed ', NEW.id)), (CONCAT('to ', NEW.v))",
			"TRIGGER after_h AFTER INSERT ON h FOR EACH ROW UPDATE changed SET v = v + 1 WHERE id = NEW.id + 1000",
		} {
			c.exec("CREATE " + create)
		}
	}
	both := func(query string) {
		t.Helper()
		var got [2]string
		for i, c := range clients {
			var all []string
			for _, q := range []string{query, "SHOW WARNINGS", "SELECT LAST_INSERT_ID()"} {
				schema, rows, err := c.run(q)
				all = append(all, c.outcome(schema, rows, err))
			}
			for _, table := range []string{"t", "h", "auto", "keyless", "kinds", "gen", "noted", "changed", "child"} {
				all = append(all, table, c.shown("SELECT * FROM "+table+" ORDER BY 1, 2"))
			}
			got[i] = strings.Join(all, "\n")
		}
		if got[0] != got[1] {
			t.Errorf("%.200s: elsewhere\n%s\nhere\n%s", query, got[0], got[1])
		}
	}
	for _, query := range []string{
		"INSERT INTO t VALUES " + tuples(0, 300, 3, "(%, 'u%', %, % + 0.25)"),
		"INSERT INTO t VALUES " + tuples(1, 300, 1, "(%, 'v%', %, 1)"), // the third is there
		"INSERT INTO t VALUES (1, 'one', 1, 1), (4, 'ONE', 1, 1), (0, 'zero', 1, 1)",
		"INSERT INTO t (a, id) VALUES (1, 1), (2, 4), (NULL, '7'), (4, '8x'), (5, 0)",
		"INSERT INTO t (a, id) VALUES (1, 10), (2, 11.5), (3, 99999999999), (4, 0)",
		"INSERT INTO t (a, id) VALUES (1, 10), (2, 11.4), (3, DEFAULT)",
		"INSERT INTO t (a, id) VALUES (1, 20), (2, 20)",
		"INSERT IGNORE INTO t (a, id, u) VALUES (1, 0, 'new'), (2, 31, 'u3'), (3, 32, 'a'), (4, 32, 'b'), (5, 34, 'much too long a text'), (6, NULL, 'c'), (7, 35, 'A'), ('8y', 37, 'd')",
		"REPLACE INTO t (a, id, u) VALUES (1, 3, 'u6'), (2, 3, 'u9'), (3, 40, NULL), (4, 41, NULL), (5, 40, 'again')",
		"INSERT INTO t (a, id, u) VALUES (1, 0, 'x'), (2, 50, 'U12'), (3, 51, 'y'), (4, 51, 'z') ON DUPLICATE KEY UPDATE a = a + VALUES(a), u = CONCAT('+', VALUES(u))",
		"INSERT INTO t (a, id, u) VALUES (1, 12, 'x'), (2, 50, 'U15') ON DUPLICATE KEY UPDATE id = id + 3", // to the next row
		"INSERT INTO t SET id = 60, a = 1",
		"SET @n = 70",
		"INSERT INTO t (id, a) VALUES (@n := @n + 1, 1), (@n := @n + 1, 2), (@n := @n + 2, 2)",
		"INSERT INTO t (id, a) VALUES ((SELECT MAX(x.id) + 1 FROM t x), 1), ((SELECT MAX(x.id) + 2 FROM t x), 2)",
		"INSERT INTO t (id, a) SELECT id + 10000, a FROM t WHERE id < 100",
		"INSERT INTO changed VALUES (1, 1), (2, 2), (3, 3)",
		"INSERT INTO changed VALUES (5, 1), (3, 2)",
		"INSERT INTO h VALUES " + tuples(0, 200, 2, "(%, %, 1)"),
		"INSERT INTO h VALUES (1, 1001, 1), (3, 4, 1)",
		"INSERT INTO h VALUES (1, NULL, 1), (3, NULL, 1), (1, 5, 1) ON DUPLICATE KEY UPDATE v = v + 10",
		"REPLACE INTO h VALUES (1, 6, 2), (2, 6, 3), (5, 6, 4)",
		"INSERT INTO auto (u) VALUES (1), (2), (3)",
		"INSERT INTO auto (u) VALUES (4), (2), (5)",
		"INSERT IGNORE INTO auto (u) VALUES (6), (2), (7)",
		"INSERT INTO auto VALUES (NULL, 10, 'a'), (0, 11, 'b'), (100, 12, 'c'), (NULL, 13, DEFAULT), (50, 14, 'd'), (101, 15, 'e')",
		"INSERT INTO auto VALUES (NULL, 20, 'a'), (200, 21, 'b'), (-5, 22, 'c')",
		"REPLACE INTO auto (u, v) VALUES (20, 'new'), (30, 'new'), (21, 'newer')",
		"INSERT INTO auto (u) VALUES (20), (40), (21) ON DUPLICATE KEY UPDATE v = 'met', id = LAST_INSERT_ID(id)",
		"INSERT INTO keyless VALUES (1, 1), (1, 2), (2, NULL), (2, NULL)",
		"INSERT INTO keyless VALUES (1, 3), (1, 2)",
		"REPLACE INTO keyless VALUES (7, 2), (7, 1)",
		"INSERT INTO kinds VALUES ('2026-01-02', 'x', 'ab', 'q '), ('2026-01-02', 2, x'00', 'q'), (20260103, 'Z', 'abcd', NULL)",
		"INSERT INTO kinds VALUES ('2026-01-04', 'x', 'b', 'q '), ('2026-1-2', 'Y', 'c', 'q')",
		"INSERT INTO kinds VALUES ('2026-01-04', 'x', 'b', 'q '), ('2026-13-45', 'x', 'c', 'q')",
		"INSERT IGNORE INTO kinds VALUES ('2026-01-04', 'w', 'b', 'q '), ('2026-13-45', 'x', 'c', 'q'), ('2026-01-05', 'x', 'toolong', 'toolong')",
		"INSERT INTO gen (id, a) VALUES (1, 1), (2, 2), (3, NULL)",
		"INSERT INTO gen VALUES (4, 5, DEFAULT, DEFAULT), (5, 2, DEFAULT, DEFAULT)",
		"INSERT INTO child VALUES (1, 0), (2, 3), (3, NULL)",
		"INSERT INTO child VALUES (4, 0), (5, 123456)",
		"BEGIN",
		"DELETE FROM t WHERE id BETWEEN 100 AND 200",
		"INSERT INTO t VALUES " + tuples(90, 40, 1, "(%, 'w%', %, 1)"),
		"INSERT INTO t VALUES " + tuples(100, 40, 1, "(%, 'w%', %, 1)"),
		"SAVEPOINT s",
		"INSERT INTO t VALUES " + tuples(1000, 20, 1, "(%, 'x%', %, 1)"),
		"UPDATE t SET id = id + 1000 WHERE id >= 1000",
		"ROLLBACK TO s",
		"INSERT INTO t VALUES " + tuples(1000, 40, 1, "(%, 'x%', %, 1)"),
		"REPLACE INTO t VALUES " + tuples(1010, 20, 2, "(%, 'x%', 0, 2)"),
		"COMMIT",
	} {
		both(query)
	}
}

// TestInsertsConflict: a transaction depends on the absence of the keys that it has looked up together,
// and on nothing else.
func TestInsertsConflict(t *testing.T) {
	near, far := twoMachines(t)
	b, a := near.client(""), far.client("")
	b.exec("CREATE DATABASE d")
	b.exec("USE d")
	a.exec("USE d")
	b.exec("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	for id, conflicts := range map[int]bool{15: true, 25: false, 9: false, 19: true} {
		a.exec("BEGIN")
		a.exec("INSERT INTO t VALUES " + tuples(10, 10, 1, "(%, 1)"))
		b.exec(fmt.Sprintf("INSERT INTO t VALUES (%d, 2)", id))
		if _, _, err := a.run("COMMIT"); (err != nil) != conflicts {
			t.Errorf("after an INSERT of %d: %v", id, err)
		}
		b.exec("DELETE FROM t")
	}
}
