package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// boundedMemory is a Memory that does not depend on the process.
func boundedMemory(statement, limit int64) *store.Memory {
	m := store.NewMemory(clock.System{}, statement, 0)
	m.Limit, m.Live = func() int64 { return limit }, func() int64 { return 0 }
	return m
}

// memoryRows is how many rows table t has, of some 300 bytes in memory each.
const memoryRows = 20_000

func openBounded(t *testing.T, m *store.Memory) *client {
	in := openWith(t, farm.Config{RegionBytes: 64 << 20, LogBytes: 32 << 20}, Options{Memory: m})
	t.Cleanup(in.close)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(200), KEY (k))")
	rows := make([]string, 1000)
	for at := 0; at < memoryRows; at += len(rows) {
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d,%d,'%d%s')", at+i, (at+i)%100, at+i, strings.Repeat("x", 150))
		}
		c.exec("INSERT INTO t VALUES " + strings.Join(rows, ","))
		c.s.Settle()
	}
	return c
}

// The memory of everything that keeps rows is counted. Beyond the bound the statement fails, and no
// other; it gives back what it has held.
func TestStatementMemory(t *testing.T) {
	m := boundedMemory(1<<20, math.MaxInt64)
	c := openBounded(t, m)
	other := c.in.client("d")
	for _, query := range []string{
		"SELECT * FROM t ORDER BY s",
		"SELECT * FROM t ORDER BY k + 1, id LIMIT 10000",
		"SELECT DISTINCT s FROM t",
		"SELECT DISTINCT CONCAT(s, id) FROM t",
		"SELECT s, COUNT(*) FROM t GROUP BY s",
		"SELECT k, GROUP_CONCAT(s) FROM t GROUP BY k",
		"SELECT GROUP_CONCAT(DISTINCT s) FROM t",
		"SELECT COUNT(DISTINCT id, k) FROM t",
		"SELECT JSON_ARRAYAGG(s) FROM t", "SELECT JSON_OBJECTAGG(id, s) FROM t",
		"SELECT id, MAX(REPEAT(s, 10)) FROM t GROUP BY id",
		"SELECT SUM(k) OVER (ORDER BY id) FROM t", "SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY s) FROM t",
		"SELECT COUNT(*) FROM (SELECT k + 1 AS x, s FROM t) a JOIN (SELECT k + 1 AS x, s FROM t) b ON a.x = b.x",
		"SELECT COUNT(*) FROM (SELECT s, RAND() FROM t ORDER BY 2) a",
		"SELECT s FROM t UNION SELECT CONCAT(s, 'x') FROM t",
		"SELECT s FROM t EXCEPT SELECT CONCAT(s, 'x') FROM t", "SELECT s FROM t INTERSECT SELECT CONCAT(s, 'x') FROM t",
		"SELECT COUNT(*) FROM t WHERE CONCAT(s, 'x') IN (SELECT CONCAT(s, 'y') FROM t)",
		"SELECT (SELECT COUNT(*) FROM t WHERE s IN (SELECT REPEAT(s, 2) FROM t))",
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, (SELECT 1 UNION SELECT 2) two WHERE n < 30) SELECT COUNT(*) FROM r",
		"SELECT COUNT(*) FROM t a JOIN t b ON a.id = b.id", // what the transaction has read
		"SELECT SUM(k) FROM t",
		"UPDATE t SET s = 'x'", "DELETE FROM t WHERE k >= 0", "INSERT INTO t SELECT id + 100000, k, s FROM t",
		"SET @a = REPEAT('x', 2000000)",
		"SELECT JSON_MERGE_PRESERVE(CONCAT('[', REPEAT('[],', 50000), '1]'), '1')",
	} {
		_, _, err := c.run(query)
		if e := myerr.Of(err); e == nil || e.Num != myerr.StatementMemory.Number || !strings.Contains(e.Message, "'statement' exceeded") {
			t.Errorf("%s: %.200v, want %d", query, err, myerr.StatementMemory.Number)
		}
		c.s.Settle()
		if n := m.Used(); n != 0 {
			t.Fatalf("%s: %d bytes are still held", query, n)
		}
		if rows := other.exec("SELECT COUNT(*) FROM t WHERE id < 10"); fmt.Sprint(rows) != "[[10]]" {
			t.Fatalf("%s: others see %v", query, rows)
		}
		other.s.Settle()
	}
}

// A DELETE of two tables keeps the rows of the join for the second, which are many more than it reads.
func TestStatementMemoryOfJoins(t *testing.T) {
	m := boundedMemory(11<<20, math.MaxInt64) // the statement needs less than 10 MiB besides
	c := openBounded(t, m)
	c.exec("CREATE TABLE n (v INT)")
	c.exec("INSERT INTO n SELECT id FROM t WHERE id < 300")
	c.s.Settle()
	_, _, err := c.run("DELETE a, b FROM n a JOIN n b")
	if e := myerr.Of(err); e == nil || e.Num != myerr.StatementMemory.Number {
		t.Errorf("%.200v, want %d", err, myerr.StatementMemory.Number)
	}
	c.s.Settle()
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
	if rows := c.exec("SELECT COUNT(*) FROM n"); fmt.Sprint(rows) != "[[300]]" {
		t.Errorf("%v rows are left", rows)
	}
}

// An UPDATE of a join gives back what it keeps, though the statement goes on whose trigger runs it: 20 of them
// would need 20 MiB more.
func TestStatementMemoryOfJoinsInTriggers(t *testing.T) {
	m := boundedMemory(84<<20, math.MaxInt64) // what the statement reads and writes counts until it ends
	c := openBounded(t, m)
	c.exec("CREATE TABLE n (id INT PRIMARY KEY)")
	c.exec("CREATE TABLE e (id INT PRIMARY KEY)")
	c.exec("INSERT INTO e SELECT id FROM t WHERE id < 20")
	c.exec("CREATE TRIGGER r AFTER INSERT ON n FOR EACH ROW UPDATE t a JOIN t b ON a.id = b.id SET a.k = a.k + 1, b.k = b.k + 1 WHERE a.id < 1000")
	if _, _, err := c.run("INSERT INTO n SELECT id FROM e"); err != nil {
		t.Error(err)
	}
	c.s.Settle()
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// Memory that is held only for a while is given back, and small statements are not refused.
func TestStatementMemoryComesBack(t *testing.T) {
	m := boundedMemory(24<<20, math.MaxInt64)
	c := openBounded(t, m)
	for query, want := range map[string]string{
		"SELECT COUNT(*) FROM t": "20000",
		// Each of 100 subqueries sorts, groups and makes distinct some rows.
		"SELECT SUM((SELECT COUNT(*) FROM (SELECT DISTINCT k, s FROM t u WHERE u.k = t.k AND u.id < 5000 ORDER BY u.s) x)) FROM t WHERE t.id < 100": "5000",
		"SELECT SUM((SELECT COUNT(*) FROM (SELECT u.s, COUNT(*) FROM t u WHERE u.k = t.k AND u.id < 5000 GROUP BY u.s) x)) FROM t WHERE t.id < 100": "5000",
		"SELECT COUNT(DISTINCT k) FROM t":                          "100",
		"SELECT LENGTH(GROUP_CONCAT(DISTINCT k)) FROM t":           "289",
		"SELECT COUNT(*) FROM (SELECT MAX(s) FROM t GROUP BY k) x": "100",
	} {
		rows := c.exec(query)
		if got := fmt.Sprint(rows[0][0]); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		c.s.Settle()
		if n := m.Used(); n != 0 {
			t.Errorf("%s: %d bytes are still held", query, n)
		}
	}
}

// Nodes that are not pointers, and so cannot be noted, are executed, also after others were noted.
func TestMeteredShow(t *testing.T) {
	c := openBounded(t, boundedMemory(1<<20, math.MaxInt64))
	c.exec("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r ORDER BY n")
	c.exec("SHOW WARNINGS LIMIT 0")
	c.exec("SHOW WARNINGS")
}

// Variables and the open transaction stay counted until they are gone.
func TestSessionMemory(t *testing.T) {
	m := boundedMemory(2<<20, math.MaxInt64)
	c := openBounded(t, m)
	c.exec("SET @a = REPEAT('x', 1500000)")
	c.s.Settle()
	if n := m.Used(); n < 1<<20 {
		t.Errorf("%d bytes are held for a variable", n)
	}
	if _, _, err := c.run("SET @b = REPEAT('x', 1500000)"); myerr.Of(err) == nil || myerr.Of(err).Num != myerr.StatementMemory.Number {
		t.Errorf("a second variable: %v", err)
	}
	c.exec("SET @a = NULL")
	c.s.Settle()
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are held for no variable", n)
	}
	c.exec("BEGIN")
	c.exec("SELECT COUNT(s) FROM t WHERE id < 3000")
	c.s.Settle()
	if m.Used() == 0 {
		t.Error("nothing is held for what a transaction has read")
	}
	c.exec("COMMIT")
	c.s.Settle()
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are held for no transaction", n)
	}
	c.exec("SET @a = REPEAT('x', 1500000)")
	c.s.SessionEnd()
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are held for a session that has ended", n)
	}
}

// All statements together have a bound, and the process's heap has one.
func TestTotalMemory(t *testing.T) {
	m := boundedMemory(0, 12<<20) // 6 MB for all, 1.5 for one
	c := openBounded(t, m)
	var keepers []*client
	failed := false
	for range 10 {
		k := c.in.client("d")
		_, _, err := k.run("SET @a = REPEAT('x', 1300000)")
		if err != nil {
			failed = true
			if e := myerr.Of(err); e.Num != myerr.StatementMemory.Number || !strings.Contains(e.Message, "'all statements' exceeded") {
				t.Fatal(err)
			}
			break
		}
		keepers = append(keepers, k)
	}
	if !failed || len(keepers) < 3 {
		t.Errorf("%d sessions have each 1.3 MB of 6", len(keepers))
	}
	c.exec("SELECT COUNT(*) FROM t WHERE id < 10") // what is small goes on
	for _, k := range keepers {
		k.s.SessionEnd()
	}
	live := int64(11 << 20)
	m.Live = func() int64 { return live }
	if _, _, err := c.run("SET @a = REPEAT('x', 1300000)"); myerr.Of(err) == nil || myerr.Of(err).Num != myerr.StatementMemory.Number {
		t.Errorf("with %d bytes in use: %v", live, err)
	}
	live = 0
	c.exec("SET @a = REPEAT('x', 1300000)")
	c.s.SessionEnd()
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}
