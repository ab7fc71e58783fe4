package sql

import (
	"fmt"
	"strings"
	"testing"
)

// Where several rows are in the way of one, ON DUPLICATE KEY UPDATE changes that which a unique key without NULLs finds, then
// one of a key with a prefix, then one of a key that may have NULLs. Errors name the first of these keys. This is MariaDB's
// order, whatever the order in CREATE TABLE.
func TestOrderOfUniqueKeys(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, c INT, d VARCHAR(4) NOT NULL, UNIQUE u (a), UNIQUE w (d(2)), UNIQUE v (b))")
	c.exec("INSERT INTO t VALUES (1, 1, 1, 0, 'a'), (2, 2, 2, 0, 'b'), (3, 3, 3, 0, 'c')")
	for i := range 3 {
		for _, test := range []struct {
			query string
			id    int
		}{
			{"INSERT INTO t VALUES (9, 1, 2, 0, 'c') ON DUPLICATE KEY UPDATE c = c + 1", 2},
			{"INSERT INTO t VALUES (9, 1, 9, 0, 'c') ON DUPLICATE KEY UPDATE c = c + 1", 3},
			{"INSERT INTO t VALUES (9, 1, 9, 0, 'x') ON DUPLICATE KEY UPDATE c = 1 + c", 1},
			{"INSERT INTO t VALUES (3, 1, 2, 0, 'a') ON DUPLICATE KEY UPDATE c = VALUES(c) + 1", 3},
		} {
			c.exec("UPDATE t SET c = 0")
			c.exec(test.query)
			_, rows, err := c.run("SELECT id FROM t WHERE c = 1")
			if want := fmt.Sprintf("[[%d]]", test.id); err != nil || fmt.Sprint(rows) != want {
				t.Errorf("execution %d of %s changes %v, want %s (%v)", i+1, test.query, rows, want, err)
			}
		}
		for query, key := range map[string]string{
			"INSERT INTO t VALUES (9, 1, 2, 0, 'c')":              "'t.v'",
			"INSERT INTO t VALUES (9, 1, 9, 0, 'c')":              "'t.w'",
			"UPDATE t SET a = 1, b = 1, d = 'a' WHERE id = 3":     "'t.v'",
			"UPDATE t SET a = 1, d = 'a' WHERE id = 3":            "'t.w'",
			"INSERT INTO t SELECT 9, 1, 2, 0, 'c'":                "'t.v'",
			"UPDATE t SET id = 1, a = 1, b = 1 WHERE d LIKE 'c%'": "'t.PRIMARY'",
		} {
			if _, _, err := c.run(query); err == nil || !strings.HasSuffix(err.Error(), "for key "+key) {
				t.Errorf("execution %d of %s fails with %v, want key %s", i+1, query, err, key)
			}
		}
	}
}
