package sql

import (
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// twice runs a statement until it runs compiled: it must have been seen before.
func (c *client) twice(query string) {
	c.in.t.Helper()
	for range 5 {
		if _, _, done, err := c.compiled(query); err != nil {
			c.in.t.Fatalf("%s: %v", query, err)
		} else if done {
			return
		}
		c.exec(query)
	}
	c.in.t.Fatalf("%s: not compiled", query)
}

// newReaders makes a database d with a table, and with a table u: transactions that would otherwise
// only read change a row of u.
func newReaders(t *testing.T, table string) (in *instance, c, other *client) {
	in = newInstance(t)
	c, other = in.client("d"), in.client("d")
	c.exec("CREATE DATABASE d")
	c.exec(table)
	c.exec("CREATE TABLE u (id INT PRIMARY KEY, n INT)")
	c.exec("INSERT INTO u VALUES (1, 0)")
	return in, c, other
}

// A SELECT in a transaction conflicts with changes of what it has returned or compared, and with no
// others, compiled or planned.
func TestColumnsConflict(t *testing.T) {
	in, setup, other := newReaders(t, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT, txt LONGTEXT, KEY (a))")
	long := strings.Repeat("x", 2*row.InlineBytesMax)
	setup.exec("INSERT INTO t (id, a, b, c, txt) VALUES (1, 10, 20, 30, '" + long + "'), (2, 11, NULL, 31, NULL)")
	for _, test := range []struct {
		read, change string
		conflict     bool
	}{
		{"SELECT a FROM t WHERE id = 1", "UPDATE t SET b = b + 1 WHERE id = 1", false},
		{"SELECT a FROM t WHERE id = 1", "UPDATE t SET a = a + 1 WHERE id = 1", true},
		{"SELECT b FROM t WHERE id = 2", "UPDATE t SET b = 0 WHERE id = 2", true},
		{"SELECT b FROM t WHERE id = 2", "UPDATE t SET b = NULL WHERE id = 2", true},
		{"SELECT b FROM t WHERE id = 2", "UPDATE t SET c = c + 1 WHERE id = 2", false},
		{"SELECT * FROM t WHERE id = 2", "UPDATE t SET c = c + 1 WHERE id = 2", true},
		{"SELECT txt FROM t WHERE id = 1", "UPDATE t SET txt = CONCAT(txt, 'y') WHERE id = 1", true},
		{"SELECT a FROM t WHERE id BETWEEN 1 AND 2", "UPDATE t SET c = c + 1 WHERE id = 2", false},
		{"SELECT a FROM t WHERE id BETWEEN 1 AND 2", "UPDATE t SET a = a + 1 WHERE id = 2", true},
		{"SELECT SUM(c) FROM t WHERE id BETWEEN 1 AND 2", "UPDATE t SET b = 7 WHERE id = 2", false},
		{"SELECT SUM(c) FROM t WHERE id BETWEEN 1 AND 2", "UPDATE t SET c = 7 WHERE id = 2", true},
		{"SELECT b FROM t WHERE id = 1 FOR UPDATE", "UPDATE t SET c = c + 1 WHERE id = 1", true},
		{"SELECT b FROM t WHERE id = 1", "DELETE FROM t WHERE id = 1", true},
	} {
		for _, run := range []func(*client, string){(*client).twice, func(c *client, q string) { c.exec(q) }} {
			c := in.client("d")
			c.s.SetForUpdate(strings.HasSuffix(test.read, "FOR UPDATE"))
			run(c, test.read)
			c.exec("BEGIN")
			run(c, test.read)
			c.s.SetForUpdate(false)
			c.exec("UPDATE u SET n = n + 1 WHERE id = 1")
			other.exec(test.change)
			if _, _, err := c.run("COMMIT"); myerr.IsConflict(err) != test.conflict || !test.conflict && err != nil {
				t.Errorf("%s, then by another %s: %v", test.read, test.change, err)
			}
			other.exec("REPLACE INTO t (id, a, b, c, txt) VALUES (1, 10, 20, 30, '" + long + "'), (2, 11, 5, 31, NULL)")
		}
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// A scan of many rows reads only the needed columns of the first rows, and the others as a whole;
// either way it notices the changes that concern it.
func TestColumnsOfManyRowsConflict(t *testing.T) {
	in, setup, other := newReaders(t, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
	setup.exec("INSERT INTO t VALUES (0, 0, 0)")
	for n := 1; n < 2*store.PartsMax; n *= 2 {
		setup.exec("INSERT INTO t SELECT id + (SELECT COUNT(*) FROM t), a, b FROM t")
	}
	for id, conflict := range map[string]map[string]bool{"5": {"a": true, "b": false}, "1900": {"a": true, "b": true}} {
		for column, want := range conflict {
			c := in.client("d")
			c.exec("BEGIN")
			c.exec("SELECT SUM(a) FROM t")
			c.exec("UPDATE u SET n = n + 1 WHERE id = 1")
			other.exec("UPDATE t SET " + column + " = " + column + " + 1 WHERE id = " + id)
			if _, _, err := c.run("COMMIT"); myerr.IsConflict(err) != want {
				t.Errorf("row %s, column %s: %v", id, column, err)
			}
		}
	}
}

// A transaction that reads a computed column conflicts with one that changes a column from which it is
// computed.
func TestComputedColumnsConflict(t *testing.T) {
	_, c, other := newReaders(t, "CREATE TABLE t (id INT PRIMARY KEY, b INT, v INT AS (b + 1))")
	c.exec("INSERT INTO t (id, b) VALUES (1, 20)")
	c.exec("BEGIN")
	c.exec("SELECT v FROM t WHERE id = 1")
	c.exec("UPDATE u SET n = n + 1 WHERE id = 1")
	other.exec("UPDATE t SET b = b + 1 WHERE id = 1")
	if _, _, err := c.run("COMMIT"); !myerr.IsConflict(err) {
		t.Error(err)
	}
}
