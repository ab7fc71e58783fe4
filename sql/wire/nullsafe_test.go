package wire

import (
	"slices"
	"strings"
	"testing"
)

// TestEqualityBesideNullSafe: a join with <=> of one column found NULL by NULL in others, of which its condition is =.
func TestEqualityBesideNullSafe(t *testing.T) {
	c := newFarmServer(t).connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT NOT NULL, n INT, s VARCHAR(10) COLLATE utf8mb4_bin, d DATE, e DATE, h TIME, KEY (e, s), KEY (e, h, n), KEY (id, d, e))",
		`INSERT INTO t VALUES (0, -1, 'a%', NULL, '2026-02-28', '00:00:00'), (1, 5, '_b', NULL, '2026-01-01', '10:00:01'), (2, -7, NULL, '2026-01-02', NULL, '23:59:59'), (3, NULL, '1', '2026-01-01', '2026-02-28', '-01:00:00'), (4, 0, NULL, '1999-12-31', NULL, '100:00:00'),
			(5, NULL, '1', NULL, '1999-12-31', NULL), (6, 0, '_b', '2026-02-28', '2026-01-02', NULL), (7, 2, 'a_', '2026-02-28', NULL, '23:59:59'), (8, NULL, '', '1999-12-31', '1999-12-31', '10:00:00'), (9, -1, 'abc', NULL, '1999-12-31', '00:00:00'),
			(10, 5, 'az', '2026-02-28', '2026-01-02', '10:00:01'), (11, 5, NULL, '2026-02-28', '2026-01-02', '00:00:00'), (12, 3, NULL, '2026-02-28', '2026-01-02', '100:00:00')`,
	} {
		seen(c, q)
	}
	const query = `SELECT x.id, y.id, z.id FROM t x JOIN t y ON x.d <=> y.d JOIN t z ON x.e = z.d AND y.e >= x.d
		WHERE NOT (z.s NOT LIKE 'A%' AND y.d <=> '2026-02-28')`
	const want = "[3 3 10] [3 3 11] [3 3 12] [3 3 6] [3 3 7] [8 8 4] [8 8 8] "
	for range 3 {
		rows := strings.SplitAfter(rowsSeen(seen(c, query))+" ", "] ")
		slices.Sort(rows)
		if got := strings.Join(rows, ""); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
