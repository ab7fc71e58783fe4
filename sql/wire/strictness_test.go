package wire

import (
	"regexp"
	"strings"
	"testing"
)

// TestStrictChanges: what only warns in a SELECT fails a change in a strict sql_mode, and no row changes.
func TestStrictChanges(t *testing.T) {
	const number, all = "Truncated incorrect DOUBLE value: 'x' (errno 1292)", "[1 1 0] [2 x 0] [3 3 0]"
	for _, s := range []struct{ mode, change, refusal, left string }{
		{"", "UPDATE t SET n = 9 WHERE s = 1", number, all},
		{"", "UPDATE t SET n = 9 WHERE s > 0.5", "value: 'x' (errno 1292)", all},
		{"", "UPDATE t SET n = 9 WHERE s + 0 = 1", number, all},
		{"", "UPDATE t SET n = 9 WHERE s IN (0, 1)", number, all},
		{"", "UPDATE t SET n = s + 1", number, all},
		{"", "UPDATE t a JOIN t b ON a.id + 0 > b.s + 1 SET a.n = 9", number, all},
		{"", "DELETE FROM t WHERE s = 0", number, all},
		{"", "DELETE a FROM t a JOIN t b ON a.s > b.id", number, all},
		{"", "INSERT INTO t SELECT id + 10, s, n FROM t WHERE s = 1", number, all},
		{"", "INSERT INTO t VALUES (1, '', 0) ON DUPLICATE KEY UPDATE n = 'x' + 1", number, all},
		{"", "UPDATE t SET d = STR_TO_DATE('x', '%Y')", "function str_to_date (errno 1411)", all},
		{"", "UPDATE t SET n = 9 WHERE id = 1 AND s = 1", "", "[1 1 9] [2 x 0] [3 3 0]"},
		{"", "UPDATE IGNORE t SET n = 9 WHERE s = 1", "", "[1 1 9] [2 x 0] [3 3 0]"},
		{"ANSI", "UPDATE t SET n = 9 WHERE s = 1", "", "[1 1 9] [2 x 0] [3 3 0]"},
		{"ANSI", "DELETE FROM t WHERE s = 0", "", "[1 1 0] [3 3 0]"},
	} {
		t.Run(s.change+s.mode, func(t *testing.T) {
			c := newFarmServer(t).connect("root", 0)
			for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9), n INT, d DATE)",
				"INSERT INTO t (id, s, n) VALUES (1, '1', 0), (2, 'x', 0), (3, '3', 0)"} {
				seen(c, q)
			}
			if s.mode != "" {
				seen(c, "SET sql_mode = '"+s.mode+"'")
			}
			s.change = strings.ReplaceAll(s.change, "t SELECT", "t (id, s, n) SELECT")
			s.change = strings.ReplaceAll(s.change, "t VALUES", "t (id, s, n) VALUES")
			if got := seen(c, s.change); !strings.Contains(got, s.refusal) || (s.refusal == "" && strings.Contains(got, "errno")) {
				t.Errorf("got %s, want %q", got, s.refusal)
			}
			if got := rowsSeen(seen(c, "SELECT id, s, n FROM t ORDER BY id")); got != s.left {
				t.Errorf("there are %s, want %s", got, s.left)
			}
		})
	}
}

// rowsSeen are the rows that seen shows, as [1 a] [2 b].
func rowsSeen(shown string) string {
	var rows []string
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, "[") {
			rows = append(rows, typeOfValue.ReplaceAllString(strings.TrimSpace(line), ""))
		}
	}
	return strings.Join(rows, " ")
}

// typeOfValue is the type that a value is shown with.
var typeOfValue = regexp.MustCompile(`[A-Z0-9]+\(|[")]`)

// TestNoZeroDate: sql_mode decides whether 0000-00-00 is a date.
func TestNoZeroDate(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, d DATE, t DATETIME, s TIMESTAMP NULL)", "INSERT INTO t VALUES (1, '2026-01-01', NULL, NULL)"} {
		seen(c, q)
	}
	changes := []string{"REPLACE INTO t (id, d) VALUES (2, '0000-00-00')", "REPLACE INTO t (id, d) VALUES (2, 0)", "REPLACE INTO t (id, t) VALUES (2, '0000-00-00 00:00:00')",
		"REPLACE INTO t (id, s) VALUES (2, '0000-00-00')", "UPDATE t SET d = '0-0-0' WHERE id = 1", "INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE d = '0000-00-00'"}
	for mode, taken := range map[string]bool{"STRICT_TRANS_TABLES": true, "NO_ZERO_DATE": true, "STRICT_TRANS_TABLES,NO_ZERO_DATE": false, "TRADITIONAL": false} {
		seen(c, "SET sql_mode = '"+mode+"'")
		for _, q := range changes {
			for range 3 {
				got := seen(c, q)
				if isRefused := strings.Contains(got, "(errno 1292)") && strings.Contains(got, "at row 1"); isRefused == taken || (taken && strings.Contains(got, "errno")) {
					t.Errorf("%s: %s: %s", mode, q, got)
				}
			}
		}
	}
}
