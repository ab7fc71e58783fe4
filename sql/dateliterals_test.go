package sql

import (
	"fmt"
	"testing"
)

// Literals such as DATE '2026-01-31' have plans, with the same answers in each execution.
func TestDateLiteralsAreTheSameLater(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d",
		"CREATE TABLE t (id INT PRIMARY KEY, day DATE, at DATETIME, s VARCHAR(20), KEY (day))",
		`INSERT INTO t VALUES (1, '2023-12-31', '2023-12-31 23:59:59', '2024-02-29'), (2, '2024-01-31', '2024-01-31 00:00:00', '2024-03-01'),
			(3, '2024-02-29', '2024-02-29 12:00:00', 'x'), (4, NULL, NULL, NULL)`,
	} {
		c.exec(q)
	}
	for _, test := range []struct{ query, want string }{
		{"SELECT id FROM t WHERE day >= DATE '2024-01-31' ORDER BY id", "[[2] [3]]"},
		{"SELECT id FROM t WHERE day = date '2024-01-31' + INTERVAL 1 MONTH", "[[3]]"},
		{"SELECT id FROM t WHERE day < DATE '2024-02-29' - INTERVAL '29' DAY ORDER BY id", "[[1]]"},
		{"SELECT id FROM t WHERE at BETWEEN TIMESTAMP '2023-12-31 23:59:59' AND TIMESTAMP '2024-01-31 00:00:00' ORDER BY id", "[[1] [2]]"},
		{"SELECT id FROM t WHERE at > TIMESTAMP '2023-12-31 23:59:59' - INTERVAL 1 SECOND AND at < DATE '2024-01-30' + INTERVAL 1 DAY", "[[1]]"},
		{"SELECT id FROM t WHERE day > DATE '2024-01-31' + INTERVAL NULL DAY", "[]"},
		{"SELECT id FROM t WHERE at > TIME '10:00:00' + INTERVAL 1 HOUR AND id = 9", "[]"},
		{"SELECT id FROM t WHERE s = DATE '2024-01-31' + INTERVAL 29 DAY", "[[1]]"},
		{"SELECT EXTRACT(YEAR FROM day), COUNT(*) FROM t GROUP BY EXTRACT(YEAR FROM day) ORDER BY 1", "[[<nil> 1] [2023 1] [2024 2]]"},
		{"SELECT DATE '2024-01-31' FROM t WHERE id = 1", "[[2024-01-31]]"},
		{"SELECT t.day 'x' FROM t WHERE id = 1", "[[2023-12-31 00:00:00 +0000 UTC]]"},
	} {
		for execution := range 3 {
			_, rows, err := c.run(test.query)
			if got := fmt.Sprint(rows); err != nil || got != test.want {
				t.Errorf("%s: execution %d: %s, %v, want %s", test.query, execution+1, got, err, test.want)
			}
		}
	}
}
