package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// A statement about 100 rows of another machine waits for that machine a few times, and not
// for each row, whichever way it is executed.
func TestRangesOfAnotherMachine(t *testing.T) {
	a, b := twoMachines(t)
	onA, onB := a.client(""), b.client("")
	m := a.cluster.Machine(1) // of b
	onA.exec("CREATE DATABASE d")
	onA.exec("USE d")
	onB.exec("USE d")
	onA.exec("CREATE TABLE t (id INT PRIMARY KEY, g INT, v VARCHAR(20), d DATETIME, KEY (g))")
	const rows = 600
	var values []string
	for i := range rows {
		values = append(values, fmt.Sprintf("(%d, %d, 'row %d', '2020-01-01')", i*7%rows, i*7%rows/100, i))
	}
	onA.exec("INSERT INTO t VALUES " + strings.Join(values, ","))
	// trips is how often a statement, planned and compiled if it can be, waits for other
	// machines, once all is known that is kept.
	trips := func(query string, rows int) (planned, compiled uint64) {
		t.Helper()
		planned, compiled = math.MaxUint64, math.MaxUint64
		for range 6 {
			before := m.Stats()
			if got := len(onB.exec(query)); rows >= 0 && got != rows {
				t.Fatalf("%s: %d rows", query, got)
			}
			planned = min(planned, m.Stats().Sub(before).RoundTrips)
			before = m.Stats()
			if _, _, _, err := onB.compiled(query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			compiled = min(compiled, m.Stats().Sub(before).RoundTrips)
		}
		return planned, compiled
	}
	// A statement that finds nothing waits for the table's description and one leaf.
	idle, idleCompiled := trips("SELECT v FROM t WHERE id = -1", 0)
	for _, test := range []struct {
		query string
		rows  int
		most  uint64 // beyond idle
	}{
		{"SELECT v FROM t WHERE id BETWEEN 100 AND 199", 100, 4},
		{"SELECT * FROM t WHERE id BETWEEN 100 AND 199 ORDER BY d, v", 100, 4},
		{"SELECT v FROM t WHERE g = 3", 100, 4},
		{"SELECT d, v FROM t WHERE g = 3 AND d > '2019-01-01'", 100, 4},
		{"SELECT v FROM t WHERE g = 4 ORDER BY g LIMIT 100", 100, 4},
		{"SELECT SUM(g) FROM t WHERE id BETWEEN 100 AND 199", 1, 4},
		{"SELECT MAX(v) FROM t", 1, 8},
		{"SELECT v FROM t WHERE id BETWEEN 300 AND 399 FOR UPDATE", 100, 4},
		{"UPDATE t SET v = 'new' WHERE id BETWEEN 200 AND 299", -1, 8},
	} {
		planned, compiled := trips(test.query, test.rows)
		if planned > idle+test.most {
			t.Errorf("%s, planned: %d round trips, and %d of a statement without rows", test.query, planned, idle)
		}
		if compiled > planned || compiled < planned && compiled > idleCompiled+test.most {
			t.Errorf("%s, compiled: %d round trips, and %d of a statement without rows", test.query, compiled, idleCompiled)
		}
	}
}
