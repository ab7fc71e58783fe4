package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// scanned makes the tables of the tests of scans.
func (p *pair) scanned() {
	p.run("CREATE TABLE t (id INT PRIMARY KEY, k INT, u INT UNSIGNED UNIQUE, d DECIMAL(12,3), s VARCHAR(20), big TEXT, dt DATE, ts DATETIME(3), dc DATETIME, " +
		"vb VARBINARY(8), e ENUM('x','y'), st SET('p','q'), b BIT(9), y YEAR, f DOUBLE, r FLOAT, tm TIME(2), j JSON, l CHAR(5) CHARACTER SET latin1, tt TIMESTAMP NULL, n DECIMAL(40,2), " +
		"KEY (k), KEY (d), KEY (dt), KEY (s(3)), KEY (k, d))")
	for i := range 150 {
		of := func(n int, values string) string {
			if i%n == 0 {
				return "NULL"
			}
			return strings.ReplaceAll(values, "%", fmt.Sprint(i))
		}
		p.run(fmt.Sprintf("INSERT INTO t VALUES (%d, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", i-20, of(7, fmt.Sprint(i%5-1)), of(9, "%"),
			of(8, fmt.Sprintf("%d.%03d", i%4-2, i)), of(6, fmt.Sprintf("'%s%d'", []string{"a", "A", "ä", "b ", ""}[i%5], i%3)),
			of(5, fmt.Sprintf("REPEAT('%c', %d)", 'a'+i%3, []int{3, 9000, 200}[i%3])), of(4, fmt.Sprintf("'2024-01-%02d'", 1+i%28)), of(11, fmt.Sprintf("'2024-01-01 10:00:00.%03d'", i)),
			of(3, fmt.Sprintf("'%04d-02-03 04:05:%02d'", 995+i, i%60)), of(10, "X'00%%'"), of(6, "1 + % MOD 2"), of(6, "% MOD 4"), of(5, "%"), of(5, "1950 + % MOD 100"),
			of(6, "-0.5 * % MOD 7"), of(6, "% / 3"), of(4, "'-01:02:03.45'"), of(6, `'{"a": [%, "\\u0001"]}'`), of(5, "'é%'"), of(5, fmt.Sprintf("'2024-03-31 0%d:30:00'", i%6)),
			of(4, "-12345678901234567890123456789.5 + %")))
	}
}

// Counts, filtered scans and results are the same whether they are taken from stored rows and indexes
// or from rows of Go values.
func TestScansOfStoredRows(t *testing.T) {
	p := newPair(t)
	p.scanned()
	var where []string
	for _, c := range []string{
		"", "id > 5", "id > 5 AND id > 50", "id BETWEEN 10 AND 60", "id BETWEEN 60 AND 10", "id >= 10 AND id < 12", "id = 3", "id = 3 AND id = 4", "id = 300", "id IN (3, 5, 5, 700)", "id NOT IN (3, 5)",
		"id <> 7", "k = 2", "k = 2 AND d > 0.5", "k = 2 AND d = 1.005", "k IN (1, 2) AND d BETWEEN -1 AND 1.5", "k IS NULL", "k IS NOT NULL", "k IS NULL AND d < 0", "k > -5", "u = 4", "u > 4", "u >= 0 AND k = 1",
		"d = 1.5", "d < 0", "d <= -0.001", "d IN (1.005, -2.004, 7)", "d > 0 AND d < 1 AND d <> 0.5", "s = 'A1'", "s > 'a1'", "s LIKE 'a%'", "s LIKE '%1'", "s NOT LIKE 'b%'", "s = ''", "s IN ('a0', 'Ä2', 'x')",
		"big = REPEAT('b', 9000)", "big = 'aaa'", "big <> 'aaa'", "big > 'b'", "big LIKE 'b%'", "big LIKE 'bbbb%'", "big IS NULL", "big IN ('aaa', 'ccc')", "dt = '2024-01-05'", "dt > '2024-01-05' AND dt <= '2024-01-09'",
		"ts > '2024-01-01 10:00:00'", "dc > '2024-01-01 10:00:00'", "dc = '1000-02-03 04:05:05'", "dc < '1001-01-01 00:00:00'", "vb = X'001212'", "vb > X'00'", "e = 'x'", "e <> 'x'", "e IN ('x', 'y')", "NOT (k = 2 OR d > 0)", "k = 2 OR d > 0",
		"k = NULL", "k > NULL", "k IN (1, NULL)", "k NOT IN (1, NULL)", "big = 'aaa' OR k = 1", "big = 'aaa' AND k = 1", "NOT (big = 'aaa')", "k = 1 AND LENGTH(big) = 3", "LENGTH(big) = 3 AND k = 1", "y > 1960", "st = 'p'", "b > 30", "f < 1", "l = 'é5'",
	} {
		if c != "" {
			c = " WHERE " + c
		}
		where = append(where, c)
	}
	for _, w := range where {
		for _, q := range []string{
			"SELECT COUNT(*) FROM t" + w, "SELECT COUNT(id), COUNT(*) FROM t" + w, "SELECT COUNT(id) FROM t" + w, "SELECT COUNT(k) FROM t" + w,
			"SELECT id, d FROM t" + w + " ORDER BY id LIMIT 4 OFFSET 3", "SELECT id FROM t" + w + " ORDER BY id DESC LIMIT 3 OFFSET 130", "SELECT * FROM t" + w + " ORDER BY id", "SELECT SUM(id) FROM t" + w,
			"SELECT n, id, n FROM t" + w + " ORDER BY id LIMIT 7", "SELECT COUNT(*) FROM (SELECT id FROM t" + w + " ORDER BY id LIMIT 6 OFFSET 2) x",
		} {
			p.both(q, true)
			p.both(q, true)
		}
	}
	for _, q := range []string{
		"SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 149", "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 150", "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 9223372036854775807", "SELECT id FROM t ORDER BY id LIMIT 0 OFFSET 5",
		"SELECT id FROM t WHERE id IN (1, 2, 3, 5, 8, 13) ORDER BY id LIMIT 2 OFFSET 3", "SELECT id FROM t WHERE id IN (1, 2) OR id BETWEEN 20 AND 30 ORDER BY id LIMIT 20 OFFSET 3", "SELECT k, d FROM t WHERE k IN (1, 2) ORDER BY k, d LIMIT 5 OFFSET 25",
		"SELECT COUNT(*) FROM t FOR UPDATE", "SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 4 FOR UPDATE",
	} {
		p.both(q, true)
		p.both(q, true)
	}
	if p.done*4 < p.all { // the tables are made by go-mysql-server
		t.Errorf("only %d of %d statements ran by a plan", p.done, p.all)
	}
}

// Own changes that are not committed count, and are skipped, as committed rows are.
func TestScansOfOwnChanges(t *testing.T) {
	p := newPair(t)
	p.scanned()
	for _, q := range []string{
		"BEGIN", "INSERT INTO t (id, k) VALUES (200, 2), (-100, 2), (27, NULL) ON DUPLICATE KEY UPDATE k = 3", "DELETE FROM t WHERE id IN (0, 50, 51)", "UPDATE t SET k = 2, d = 9 WHERE id = 60", "UPDATE t SET id = 500 WHERE id = 61",
	} {
		p.run(q)
	}
	for range 2 {
		for _, q := range []string{
			"SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM t WHERE id BETWEEN -200 AND 60", "SELECT COUNT(*) FROM t WHERE k = 2", "SELECT COUNT(*) FROM t WHERE k = 2 AND d > 0", "SELECT id, k FROM t ORDER BY id LIMIT 50 OFFSET 15",
			"SELECT id FROM t ORDER BY id DESC LIMIT 9 OFFSET 60", "SELECT * FROM t WHERE k = 2 ORDER BY id",
		} {
			p.both(q, true)
		}
		p.run("ROLLBACK")
		p.run("BEGIN")
	}
	p.run("COMMIT")
}

// A transaction depends on the rows that it has counted or skipped, and on no others.
func TestScansConflict(t *testing.T) {
	in := newInstance(t)
	a, b := in.client(""), in.client("")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, KEY (v))", "CREATE TABLE d.u (id INT PRIMARY KEY)"} {
		a.exec(q)
	}
	for i := range 100 {
		a.exec(fmt.Sprintf("INSERT INTO d.t VALUES (%d, %d)", i, i))
	}
	for i, tc := range []struct {
		read, change string
		conflicts    bool
	}{
		{"SELECT COUNT(*) FROM d.t", "INSERT INTO d.t VALUES (1000, 1000)", true},
		{"SELECT COUNT(*) FROM d.t", "DELETE FROM d.t WHERE id = 1", true},
		{"SELECT COUNT(*) FROM d.t", "UPDATE d.t SET v = 7 WHERE id = 2", false},
		{"SELECT COUNT(*) FROM d.t WHERE id BETWEEN 10 AND 20", "DELETE FROM d.t WHERE id = 11", true},
		{"SELECT COUNT(*) FROM d.t WHERE id BETWEEN 10 AND 20", "DELETE FROM d.t WHERE id = 21", false},
		{"SELECT COUNT(*) FROM d.t WHERE v = 50", "UPDATE d.t SET v = 50 WHERE id = 3", true},
		{"SELECT COUNT(*) FROM d.t WHERE v + 0 = 60", "UPDATE d.t SET v = 60 WHERE id = 4", true},
		{"SELECT id FROM d.t WHERE id >= 30 ORDER BY id LIMIT 2 OFFSET 5", "DELETE FROM d.t WHERE id = 31", true},
		{"SELECT id FROM d.t WHERE id >= 30 ORDER BY id LIMIT 2 OFFSET 5", "INSERT INTO d.t VALUES (31, 1)", true},
		{"SELECT id FROM d.t WHERE id >= 40 ORDER BY id LIMIT 2 OFFSET 5", "DELETE FROM d.t WHERE id = 48", false},
		{"SELECT * FROM d.t WHERE id >= 60 AND v < 62 ORDER BY id", "UPDATE d.t SET v = 0 WHERE id = 70", true},
	} {
		for range 3 { // by a plan, too
			a.exec(tc.read)
			if _, _, _, err := a.compiled(tc.read); err != nil {
				t.Fatal(err)
			}
		}
		a.exec("BEGIN")
		if _, _, _, err := a.compiled(tc.read); err != nil || !a.byPlan {
			t.Errorf("%s: by a plan %v, %v", tc.read, a.byPlan, err)
		}
		b.exec(tc.change)
		_, _, err := a.run(fmt.Sprintf("INSERT INTO d.u VALUES (%d)", i))
		if err == nil {
			_, _, err = a.run("COMMIT")
		}
		if a.s.Abort(); tc.conflicts != (err != nil) || err != nil && !myerr.IsConflict(err) {
			t.Errorf("%s and %s: %v", tc.read, tc.change, err)
		}
		_ = a.s.TakeCommitError()
	}
}

// A hash index has no order, and its cursors pass entries one by one.
func TestScansOfHashIndexes(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE h (id INT, v INT, w INT NOT NULL, PRIMARY KEY (id) USING HASH, UNIQUE KEY (w) USING HASH)")
	for i := range 200 {
		p.run(fmt.Sprintf("INSERT INTO h VALUES (%d, %d, %d)", i, i%7, 1000-i))
	}
	for _, q := range []string{
		"SELECT COUNT(*) FROM h", "SELECT COUNT(*) FROM h WHERE id = 7", "SELECT COUNT(*) FROM h WHERE id IN (7, 9, 9, 500)", "SELECT COUNT(*) FROM h WHERE w IN (900, 950)", "SELECT COUNT(*) FROM h WHERE id > 20 AND v = 3",
		"SELECT COUNT(*) FROM (SELECT id FROM h LIMIT 20 OFFSET 190) x", "SELECT COUNT(*) FROM (SELECT id FROM h WHERE id IN (1, 2, 3, 4) LIMIT 20 OFFSET 3) x", "SELECT * FROM h WHERE v = 3 ORDER BY id",
	} {
		p.both(q, true)
		p.both(q, true)
	}
}

// Counts, scans and skips end when the statement does.
func TestScansEnd(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.s.SetCurrentDatabase("d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	for i := range 100 {
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d, %d)", i, i))
	}
	for _, q := range []string{
		"SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM t WHERE v = 3", "SELECT id FROM t WHERE v > 2", "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 50",
	} {
		for range 2 {
			if _, _, _, err := c.compiled(q); err != nil {
				t.Fatal(err)
			}
		}
		x := c.s.Compiled(q, false, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.s.Run(in.e.NewContext(ctx, c.s, gms.WithQuery(q)), x); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", q, err)
		}
		c.s.Abort()
	}
}

// Rows that FOR UPDATE has selected or counted by a plan are written: two such transactions do not both commit.
func TestScansLock(t *testing.T) {
	in := newInstance(t)
	a, b := in.client(""), in.client("")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "CREATE TABLE d.u (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3)"} {
		a.exec(q)
	}
	for i, q := range []string{"SELECT id FROM d.t WHERE v = 2 FOR UPDATE", "SELECT COUNT(*) FROM d.t FOR UPDATE", "SELECT COUNT(*) FROM d.t WHERE v + 0 = 2 FOR UPDATE"} {
		for range 3 { // by a plan, too
			a.exec(q)
			if _, _, _, err := a.compiled(q); err != nil {
				t.Fatal(err)
			}
		}
		var failed int
		for _, c := range []*client{a, b} {
			c.exec("BEGIN")
			c.s.ForUpdate = true
			if _, _, _, err := c.compiled(q); err != nil {
				t.Fatal(err)
			}
			c.s.ForUpdate = false
		}
		for n, c := range []*client{a, b} {
			_, _, err := c.run(fmt.Sprintf("INSERT INTO d.u VALUES (%d)", 2*i+n))
			if err == nil {
				_, _, err = c.run("COMMIT")
			}
			if err != nil {
				failed++
			}
			c.s.Abort()
			_ = c.s.TakeCommitError()
		}
		if failed != 1 {
			t.Errorf("%s: %d of two transactions failed", q, failed)
		}
	}
}
