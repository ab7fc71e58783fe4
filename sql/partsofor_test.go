package sql

import (
	"fmt"
	"testing"
)

// A join by an equality that is in all parts of an OR finds what the OR says, also where parts are NULL.
func TestJoinsByPartsOfOr(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{
		"CREATE DATABASE d", "USE d",
		"CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT)", "CREATE TABLE b (id INT PRIMARY KEY, a INT, z INT, KEY (a))",
		"INSERT INTO a VALUES (1, 1, 1), (2, 2, NULL), (3, NULL, 3), (4, 4, 4)",
		"INSERT INTO b VALUES (1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 3, 3), (5, NULL, 1), (6, 4, NULL), (7, 4, 4)",
	} {
		c.exec(q)
	}
	for _, test := range []struct{ query, want string }{
		{"SELECT a.id, b.id FROM a, b WHERE a.id = b.a AND a.x = 1 AND b.z = 2 OR a.id = b.a AND a.x = 4 AND b.z = 4 ORDER BY b.id", "[[1 2] [4 7]]"},
		{"SELECT a.id, b.id FROM a, b WHERE (a.id = b.a AND a.x = 1) OR (b.a = a.id AND a.y = 3) ORDER BY b.id", "[[1 1] [1 2] [3 4]]"},
		{"SELECT a.id, b.id FROM a, b WHERE (a.id = b.a AND a.x = 1) OR b.a = a.id ORDER BY b.id", "[[1 1] [1 2] [2 3] [3 4] [4 6] [4 7]]"},
		{"SELECT a.id, b.id FROM a JOIN b ON a.id = b.a WHERE a.x = 1 AND b.z = 1 OR a.y IS NULL AND b.z = 2 OR b.z IS NULL AND a.y = 4 ORDER BY b.id", "[[1 1] [2 3] [4 6]]"},
		{"SELECT a.id, b.id FROM a LEFT JOIN b ON a.id = b.a AND b.z = 2 WHERE a.x = 1 AND b.z = 2 OR b.z IS NULL AND a.x = 4 ORDER BY a.id", "[[1 2] [4 <nil>]]"},
		{"SELECT a.id, b.id FROM a JOIN b ON a.id = b.a WHERE NOT (a.x = 1 AND b.z = 1 OR a.x = 2 AND b.z = 2) ORDER BY b.id", "[[1 2] [3 4] [4 6] [4 7]]"},
	} {
		for execution := range 3 {
			_, rows, err := c.run(test.query)
			if got := fmt.Sprint(rows); err != nil || got != test.want {
				t.Errorf("%s: execution %d: %s, %v, want %s", test.query, execution+1, got, err, test.want)
			}
		}
	}
}
