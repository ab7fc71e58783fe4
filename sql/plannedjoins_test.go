package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
)

// byOurPlan runs a statement until it has a plan of ours, and returns its rows as text.
func (c *client) byOurPlan(t *testing.T, query string) (rows string) {
	t.Helper()
	for range 2 {
		_, all, _, err := c.compiled(query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		rows = fmt.Sprint(all)
	}
	if !c.byPlan {
		t.Errorf("no plan of ours: %s", query)
	}
	return rows
}

func TestPlannedJoins(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE p (id INT PRIMARY KEY, k TINYINT UNSIGNED, s VARCHAR(10), d DECIMAL(6,2), t DATETIME, KEY (k), KEY (s(2)), KEY (d), KEY (t))")
	c.exec("CREATE TABLE q (n BIGINT, u BIGINT UNSIGNED, s VARCHAR(20), d DECIMAL(8,3), t DATETIME(6), x INT, KEY (n), KEY (u), KEY (s), KEY (d), KEY (t), KEY (x))")
	c.exec("INSERT INTO p VALUES (1, 200, 'abc', 1.50, '2024-01-01'), (2, NULL, NULL, NULL, NULL), (3, 0, 'ABD', -1.5, '2024-01-02'), (4, 1, 'a', 0, NULL)")
	c.exec("INSERT INTO q VALUES (200, 18446744073709551615, 'ABC', 1.5, '2024-01-01', 1), (-1, 200, 'abd', 1.504, '2024-01-01 00:00:00.1', 2), (NULL, NULL, NULL, NULL, NULL, NULL), (456, 3, 'ab', -1.5, '2024-01-02', 3)")
	c.exec("CREATE TABLE r (x INT, KEY (x))")
	c.exec("INSERT INTO r VALUES (1), (1), (2), (NULL), (2)")
	for query, want := range map[string]string{
		// Numbers that the other column cannot have are equal to none, nor is NULL.
		"SELECT p.id, q.x FROM q JOIN p ON p.k = q.n WHERE q.x BETWEEN 1 AND 9 ORDER BY p.id":     "[[1 1]]",
		"SELECT p.id, q.x FROM q LEFT JOIN p ON p.k = q.n WHERE q.x BETWEEN 1 AND 9 ORDER BY q.x": "[[1 1] [<nil> 2] [<nil> 3]]",
		"SELECT p.id, q.x FROM p JOIN q ON p.k = q.u WHERE p.id BETWEEN 1 AND 9 ORDER BY p.id":    "[[1 2]]",
		"SELECT p.id, q.x FROM q JOIN p ON p.id = q.u WHERE q.x BETWEEN 1 AND 9 ORDER BY p.id":    "[[3 3]]",
		"SELECT COUNT(*) FROM p JOIN q ON p.k = q.n":                                              "[[1]]",
		// An index of beginnings gives more rows than are equal.
		"SELECT p.id, q.x FROM q JOIN p ON p.s = q.s WHERE q.x < 9 ORDER BY p.id": "[[1 1] [3 2]]",
		// As do digits beyond those of the other column.
		"SELECT p.id, q.x FROM q JOIN p ON p.d = q.d WHERE q.x < 9 ORDER BY p.id": "[[1 1] [3 3]]",
		"SELECT p.id, q.x FROM q JOIN p ON p.t = q.t WHERE q.x < 9 ORDER BY p.id": "[[1 1] [3 3]]",
		// What ON says of the left side alone decides whether there is a row of NULLs; WHERE, whether there is a row.
		"SELECT p.id, q.x FROM p LEFT JOIN q ON q.u = p.id AND p.id > 3 WHERE p.id IN (3, 4) ORDER BY p.id":           "[[3 <nil>] [4 <nil>]]",
		"SELECT p.id FROM p LEFT JOIN q ON q.u = p.id WHERE p.id > 0 AND q.u IS NULL ORDER BY p.id":                   "[[1] [2] [4]]",
		"SELECT p.id, q.x FROM p LEFT JOIN q ON q.u = p.id AND q.x = NULL WHERE p.id > 2 ORDER BY p.id":               "[[3 <nil>] [4 <nil>]]",
		"SELECT p.id, q.x FROM p LEFT JOIN q ON q.x IS NULL AND q.n IS NULL WHERE p.id = 3":                           "[[3 <nil>]]",
		"SELECT r.id, p.id FROM p r LEFT JOIN q ON q.u = r.id LEFT JOIN p ON p.id = q.x WHERE r.id > 2 ORDER BY r.id": "[[3 3] [4 <nil>]]",
		"SELECT p.id, q.x FROM q RIGHT JOIN p ON q.u = p.id WHERE p.id > 2 ORDER BY p.id DESC LIMIT 1":                "[[4 <nil>]]",
		"SELECT DISTINCT p.s, COUNT(q.x) FROM p LEFT JOIN q ON q.u = p.id GROUP BY p.s ORDER BY p.s":                  "[[<nil> 0] [a 0] [abc 0] [ABD 1]]",
		"SELECT p.id FROM p, q WHERE p.id = 3 AND q.n = 456 LIMIT 0":                                                  "[]",
		// NULL is in no list, and equal to nothing.
		"SELECT id FROM p WHERE id > 0 AND EXISTS (SELECT 1 FROM q WHERE q.u = p.k) ORDER BY id":                             "[[1]]",
		"SELECT id FROM p WHERE id > 0 AND NOT EXISTS (SELECT 1 FROM q WHERE q.u = p.k) ORDER BY id":                         "[[2] [3] [4]]",
		"SELECT id FROM p WHERE id > 0 AND id IN (SELECT u FROM q WHERE x = 3)":                                              "[[3]]",
		"SELECT p.id FROM p, q WHERE p.id = 3 AND q.u = p.id AND NOT EXISTS (SELECT * FROM r WHERE r.x = p.k AND r.x = q.x)": "[[3]]",
		// A row is returned once, whatever has several.
		"SELECT id FROM p WHERE id > 0 AND EXISTS (SELECT * FROM r WHERE r.x = p.id) ORDER BY id":                                         "[[1] [2]]",
		"SELECT id FROM p WHERE id > 0 AND id IN (SELECT x FROM r) ORDER BY id DESC LIMIT 1":                                              "[[2]]",
		"SELECT p.id, q.x FROM p LEFT JOIN q ON q.x = p.id WHERE p.id > 0 AND NOT EXISTS (SELECT * FROM r WHERE r.x = q.x) ORDER BY p.id": "[[3 3] [4 <nil>]]",
	} {
		if got := c.byOurPlan(t, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// A join that LIMIT ends has read the rows that it returned, of both tables, and few others: a transaction
// with it commits unless one of those has changed.
func TestPlannedJoinReads(t *testing.T) {
	in := newInstance(t)
	c, other := in.client(""), in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	other.exec("USE d")
	c.exec("CREATE TABLE p (id INT PRIMARY KEY, v INT)")
	c.exec("CREATE TABLE q (id INT PRIMARY KEY, p INT, v INT, KEY (p))")
	c.exec("CREATE TABLE w (id INT PRIMARY KEY)")
	for i := range 200 {
		c.exec(fmt.Sprintf("INSERT INTO p VALUES (%d, 0)", i))
		c.exec(fmt.Sprintf("INSERT INTO q VALUES (%d, %d, 0)", i, i))
	}
	const query = "SELECT q.id, p.v FROM q JOIN p ON p.id = q.p ORDER BY q.id DESC LIMIT 3"
	c.byOurPlan(t, query)
	for i, change := range []struct {
		text      string
		conflicts bool
	}{
		{"UPDATE q SET v = v + 1 WHERE id = 5", false},
		{"UPDATE p SET v = v + 1 WHERE id = 5", false},
		{"UPDATE p SET v = v + 1 WHERE id = 198", true},
		{"UPDATE q SET p = 0 WHERE id = 199", true},
		{"DELETE FROM p WHERE id = 197", true},
	} {
		c.exec("BEGIN")
		c.byOurPlan(t, query)
		other.exec(change.text)
		c.exec(fmt.Sprintf("INSERT INTO w VALUES (%d)", i))
		_, _, err := c.run("COMMIT")
		if got := myerr.IsConflict(err); got != change.conflicts {
			t.Errorf("%s: conflict %v (%v)", change.text, got, err)
		}
	}
}

// A join whose lookups wait for another machine makes them together; a LIMIT reads little more than it
// needs.
func TestPlannedJoinsOfAnotherMachine(t *testing.T) {
	a, b := twoMachines(t)
	onA, onB := a.client(""), b.client("")
	onA.exec("CREATE DATABASE d")
	onA.exec("USE d")
	onB.exec("USE d")
	createJoined(onA, 1000)
	m := a.cluster.Machine(1) // of b
	for _, test := range []struct {
		query string
		most  uint64 // round trips, or READs if the query has a limit
	}{
		{"SELECT l.id, r.v FROM l JOIN r ON r.id = l.r WHERE l.id BETWEEN 100 AND 209", 40},
		{"SELECT l.id, r.v, c.v FROM l LEFT JOIN r ON r.id = l.r LEFT JOIN c ON c.a = l.x AND c.b = l.id WHERE l.id BETWEEN 100 AND 199", 60},
		{"SELECT l.id, h.v FROM l JOIN h ON h.id = l.h WHERE l.id BETWEEN 100 AND 199", 44},
		{"SELECT l.id, r.v FROM l LEFT JOIN r ON r.id = l.r LIMIT 5", 60},
	} {
		want := onA.byOurPlan(t, test.query)
		least := uint64(math.MaxUint64)
		for range 5 {
			before := m.Stats()
			if got := onB.byOurPlan(t, test.query); got != want {
				t.Fatalf("%s: %s, want %s", test.query, got, want)
			}
			s := m.Stats().Sub(before)
			n := s.RoundTrips
			if strings.Contains(test.query, "LIMIT") {
				n = s.RemoteReads
			}
			least = min(least, n/2) // it runs twice
		}
		if least > test.most {
			t.Errorf("%s: %d", test.query, least)
		}
		t.Logf("%s: %d", test.query, least)
	}
}

// Joins with rows that are kept: of derived tables, WITH and IN (SELECT ... GROUP BY).
func TestPlannedSources(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE o (id INT PRIMARY KEY, g BIGINT, s VARCHAR(5), v DECIMAL(6,2), KEY (g))")
	c.exec("CREATE TABLE n (g TINYINT UNSIGNED, s VARCHAR(8), v DECIMAL(8,3))")
	c.exec("INSERT INTO o VALUES (1, 1, 'a', 1.5), (2, 300, 'A', 2), (3, NULL, 'b', NULL), (4, 2, NULL, 4), (5, -1, 'B', 0.5)")
	c.exec("INSERT INTO n VALUES (1, 'A', 1.500), (1, 'b', 2.001), (2, NULL, NULL), (NULL, 'c', 4), (44, 'a', 0.5)")
	for query, want := range map[string]string{
		// A value that the other column cannot have equals none; NULL equals nothing; texts go by their collation.
		"SELECT o.id, d.s FROM o JOIN (SELECT g, s FROM n WHERE g < 200) d ON d.g = o.g ORDER BY o.id, d.s":                                "[[1 A] [1 b] [4 <nil>]]",
		"SELECT o.id, d.s FROM o LEFT JOIN (SELECT g, s FROM n LIMIT 9) d ON d.g = o.g ORDER BY o.id, d.s":                                 "[[1 A] [1 b] [2 <nil>] [3 <nil>] [4 <nil>] [5 <nil>]]",
		"SELECT o.id, d.g FROM (SELECT g, s FROM n) d LEFT JOIN o ON d.s = o.s ORDER BY o.id, d.g":                                         "[[<nil> <nil>] [<nil> 2] [1 1] [1 44] [2 1] [2 44] [3 1] [5 1]]",
		"SELECT o.id, d.v FROM o JOIN (SELECT DISTINCT v FROM n) d ON d.v = o.v ORDER BY o.id":                                             "[[1 1.5] [4 4] [5 0.5]]",
		"SELECT o.id, n.g FROM o JOIN n ON n.s = o.s AND n.v > o.v ORDER BY o.id, n.g":                                                     "[[5 1]]",
		"SELECT o.id, n.g FROM o LEFT JOIN n ON n.s = o.s AND n.g > 1 ORDER BY o.id, n.g":                                                  "[[1 44] [2 44] [3 <nil>] [4 <nil>] [5 <nil>]]",
		"WITH w AS (SELECT g, COUNT(*) AS c FROM n GROUP BY g) SELECT o.id, w.c FROM o LEFT JOIN w ON w.g = o.g WHERE o.id < 3 ORDER BY 1": "[[1 2] [2 <nil>]]",
		"WITH w AS (SELECT g, s FROM n) SELECT COUNT(*) FROM w a JOIN w b ON a.g = b.g":                                                    "[[6]]",
		"SELECT o.id, m.x FROM o JOIN (SELECT MAX(id) AS x FROM o GROUP BY s) m ON m.x = o.id ORDER BY o.id":                               "[[2 2] [4 4] [5 5]]",
		"SELECT o.id FROM o JOIN (SELECT AVG(v) AS x FROM n) m ON o.v > m.x ORDER BY o.id":                                                 "[[4]]",
		"SELECT o.id FROM o JOIN (SELECT id FROM o WHERE g = 7) m ON m.id = o.id":                                                          "[]",
		"SELECT o.id FROM o LEFT JOIN (SELECT id FROM o WHERE g = 7) m ON m.id = o.id WHERE m.id IS NULL AND o.id < 3 ORDER BY 1":          "[[1] [2]]",
		// Each row once, however often the set has its value, in whatever case.
		"SELECT id FROM o WHERE s IN (SELECT s FROM n GROUP BY s, v) ORDER BY id":                                  "[[1] [2] [3] [5]]",
		"SELECT id FROM o WHERE g IN (SELECT g FROM n GROUP BY g HAVING COUNT(*) > 1)":                             "[[1]]",
		"SELECT o.id FROM o JOIN n ON n.g = o.g WHERE o.id IN (SELECT MAX(id) FROM o GROUP BY s) ORDER BY o.id":    "[[4]]",
		"SELECT id FROM o WHERE g IN (SELECT n.g FROM n JOIN o i ON i.id = n.g) ORDER BY id":                       "[[1] [4]]",
		"SELECT id FROM o WHERE g IN (SELECT g FROM n GROUP BY g) AND g IN (SELECT MAX(g) FROM n GROUP BY s)":      "[[1] [4]]",
		"SELECT COUNT(*) FROM n a, n b WHERE b.s IN (SELECT s FROM o GROUP BY s, v)":                               "[[15]]", // a set between two tables
		"SELECT d.id FROM (SELECT id, g FROM o) d WHERE d.g IN (SELECT g FROM n GROUP BY g HAVING MAX(v) IS NULL)": "[[4]]",
	} {
		if got := c.byOurPlan(t, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	// Without a plan a join beside such a set is not reordered: so its first execution has a plan.
	first := "SELECT COUNT(*) FROM o, n, o b WHERE o.g IN (SELECT g FROM n GROUP BY g HAVING COUNT(*) > 1) AND n.g = o.g AND b.id = n.g"
	if _, rows, _, err := c.compiled(first); err != nil || !c.byPlan || fmt.Sprint(rows) != "[[2]]" {
		t.Errorf("%s: %v, %v, by a plan of ours: %v", first, rows, err, c.byPlan)
	}
	// A transaction's own rows are joined, too.
	query := "SELECT o.id, d.g FROM o JOIN (SELECT g, s FROM n WHERE s > '') d ON d.g = o.g ORDER BY o.id, d.g"
	c.byOurPlan(t, query)
	c.exec("BEGIN")
	c.exec("INSERT INTO n VALUES (2, 'z', 0)")
	c.exec("DELETE FROM n WHERE g = 1")
	if got := c.byOurPlan(t, query); got != "[[4 2]]" {
		t.Errorf("in a transaction: %s", got)
	}
	c.exec("ROLLBACK")
	if got := c.byOurPlan(t, query); got != "[[1 1] [1 1]]" {
		t.Errorf("after it: %s", got)
	}
}
