package sql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/myerr"
)

// byPlan runs a statement twice, and then once more by a plan of our own.
func (c *client) mustByPlan(t *testing.T, query string) []gms.Row {
	t.Helper()
	var rows []gms.Row
	for range 3 {
		var err error
		if _, rows, _, err = c.compiled(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if !c.byPlan {
		t.Errorf("not by a plan: %s", query)
	}
	return rows
}

// engineTable returns a client of a new database with a table of 100 rows.
func engineTable(t *testing.T) *client {
	t.Helper()
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(20), pad VARCHAR(20), KEY (k))")
	for i := range 100 {
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d, %d, 's%d', 'p')", i, i%10, i%3))
	}
	return c
}

// A plan is made anew for another version of its table.
func TestEngineSeesAlterations(t *testing.T) {
	c := engineTable(t)
	const query = "SELECT * FROM t WHERE k = 3 OR id = 4 ORDER BY id LIMIT 2"
	if rows := c.mustByPlan(t, query); len(rows[0]) != 4 {
		t.Fatal(rows)
	}
	c.exec("ALTER TABLE t ADD COLUMN extra INT DEFAULT 7")
	if rows := c.mustByPlan(t, query); len(rows[0]) != 5 || rows[0][4] != int32(7) {
		t.Error(rows)
	}
	c.exec("DROP INDEX k ON t")
	if rows := c.mustByPlan(t, query); len(rows) != 2 {
		t.Error(rows)
	}
	c.exec("DROP TABLE t")
	if _, _, _, err := c.compiled(query); myerr.Of(err) == nil || myerr.Of(err).Num != 1146 {
		t.Error(err)
	}
	c.exec("CREATE VIEW t AS SELECT 1 AS id, 3 AS k")
	if _, rows, _, err := c.compiled(query); err != nil || len(rows) != 1 || c.byPlan {
		t.Error(rows, err)
	}
}

// What the open transaction has created itself is left to go-mysql-server.
func TestEngineInTransaction(t *testing.T) {
	c := engineTable(t)
	c.exec("BEGIN")
	c.mustByPlan(t, "UPDATE t SET k = k + 100 WHERE id BETWEEN 3 AND 5")
	if rows := c.mustByPlan(t, "SELECT COUNT(*), MAX(k) FROM t WHERE k > 50"); rows[0][0] != int64(3) || rows[0][1] != int32(305) {
		t.Error(rows)
	}
	c.mustByPlan(t, "DELETE FROM t WHERE k > 50 ORDER BY id LIMIT 1")
	c.exec("ROLLBACK")
	if rows := c.mustByPlan(t, "SELECT COUNT(*), MAX(k) FROM t WHERE k >= 0"); rows[0][0] != int64(100) || rows[0][1] != int32(9) {
		t.Error(rows)
	}
}

// Whoever has a plan needs the privileges for it all the same.
func TestEngineAsksForPrivileges(t *testing.T) {
	in := openWith(t, testConfig, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	root := in.client("")
	root.exec("CREATE DATABASE d")
	root.exec("CREATE TABLE d.t (id INT PRIMARY KEY, k INT)")
	root.exec("INSERT INTO d.t VALUES (1, 1)")
	root.exec("CREATE USER joe@localhost")
	root.exec("GRANT INSERT ON d.t TO joe@localhost")
	const query = "SELECT k FROM d.t WHERE id = 1 LIMIT 1"
	root.mustByPlan(t, query)
	joe := in.client("d")
	joe.s.SetClient(gms.Client{User: "joe", Address: "localhost"})
	for range 3 {
		if _, _, _, err := joe.compiled(query); myerr.Of(err) == nil || myerr.Of(err).Num != 1142 {
			t.Errorf("got %v, want 1142", err)
		}
	}
	root.exec("GRANT SELECT ON d.t TO joe@localhost")
	joe.mustByPlan(t, query)
}

// A statement by a plan is bounded as others are, and gives back what it has held.
func TestEngineMemory(t *testing.T) {
	m := boundedMemory(1<<20, math.MaxInt64)
	c := openBounded(t, m)
	for _, query := range []string{
		"SELECT * FROM t WHERE k >= 0", "SELECT s FROM t WHERE k >= 0 ORDER BY s", "SELECT s, COUNT(*) FROM t WHERE k >= 0 GROUP BY s",
		"SELECT DISTINCT s FROM t WHERE k >= 0", "UPDATE t SET k = 1 WHERE k >= 0", "DELETE FROM t WHERE k >= 0 ORDER BY s LIMIT 15000",
	} {
		for range 2 {
			_, _, _, err := c.compiled(query)
			if e := myerr.Of(err); e == nil || e.Num != myerr.StatementMemory.Number {
				t.Errorf("%s: %.200v", query, err)
			}
			c.s.Settle()
			if n := m.Used(); n != 0 {
				t.Fatalf("%s: %d bytes are still held", query, n)
			}
		}
	}
	for range 3 {
		c.mustByPlan(t, "SELECT s FROM t WHERE k = 5 ORDER BY s LIMIT 3")
		c.s.Settle()
	}
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// A statement ends when its context does.
func TestEngineEnds(t *testing.T) {
	c := engineTable(t)
	for _, query := range []string{"SELECT * FROM t WHERE s = 's1' ORDER BY pad, id", "UPDATE t SET pad = 'q' WHERE s = 's1'"} {
		c.mustByPlan(t, query)
		x := c.s.Compiled(query, false, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.s.Run(c.in.e.NewContext(ctx, c.s, gms.WithQuery(query)), x); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", query, err)
		}
		_ = c.s.Failed()
	}
}

// FOR UPDATE locks the rows that meet the whole WHERE: others in the same range may be changed, but for
// the columns that were read.
func TestEngineLocksWhatPasses(t *testing.T) {
	c := engineTable(t)
	const query = "SELECT id FROM t WHERE k = 3 AND s = 's0' ORDER BY id LIMIT 10 FOR UPDATE"
	c.s.ForUpdate = true
	c.exec("BEGIN")
	if rows := c.mustByPlan(t, query); len(rows) != 4 {
		t.Fatal(rows)
	}
	c.s.ForUpdate = false
	other := c.in.client("d")
	other.exec("UPDATE t SET pad = 'changed' WHERE id = 13") // k = 3 and s = 's1'
	c.exec("UPDATE t SET pad = 'locked' WHERE id = 3")
	c.exec("COMMIT")
	c.s.ForUpdate = true
	c.exec("BEGIN")
	c.mustByPlan(t, query)
	c.s.ForUpdate = false
	other.exec("UPDATE t SET pad = 'again' WHERE id = 3")
	if _, _, err := c.run("COMMIT"); !myerr.IsConflict(err) {
		t.Errorf("a row that was locked has changed: %v", err)
	}
}

// Sessions run the same plans at the same time, also those that have expressions of go-mysql-server.
func TestEngineConcurrently(t *testing.T) {
	c := engineTable(t)
	queries := []string{
		"SELECT UPPER(s), k + 1 FROM t WHERE k = 3 AND CONCAT(s, 'x') = 's0x' ORDER BY id LIMIT 2",
		"SELECT COUNT(*), SUM(k) FROM t WHERE k BETWEEN 2 AND 4", "SELECT s FROM t WHERE id = 7 OR k = 3 ORDER BY s, id LIMIT 3",
	}
	var want []string
	for _, q := range queries {
		want = append(want, fmt.Sprint(c.mustByPlan(t, q)))
	}
	var wg sync.WaitGroup
	for range 4 {
		own := c.in.client("d")
		wg.Go(func() {
			for i := range 60 {
				q := i % len(queries)
				_, rows, _, err := own.compiled(queries[q])
				if got := fmt.Sprint(rows); err != nil || got != want[q] || !own.byPlan {
					t.Errorf("%s: %s, %v, want %s", queries[q], got, err, want[q])
				}
			}
		})
	}
	wg.Wait()
}

// Where go-mysql-server compares otherwise than MariaDB 10.11, plans of our own do as that does.
func TestEngineAsMariaDB(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, v BIGINT UNSIGNED)")
	c.exec("INSERT INTO t VALUES (1, 9223372036854775808), (2, 5), (3, NULL)")
	if rows := c.mustByPlan(t, "SELECT id FROM t WHERE v > 9223372036854775806 OR id = 7"); fmt.Sprint(rows) != "[[1]]" {
		t.Error(rows)
	}
}

// More sets of fixed literals than a statement may have plans for are left to go-mysql-server.
func TestEngineForgetsNothing(t *testing.T) {
	c := engineTable(t)
	ours := 0
	for i := range 40 {
		_, rows, _, err := c.compiled(fmt.Sprintf("SELECT %d, k FROM t WHERE id = 3 LIMIT 1", i))
		if err != nil || fmt.Sprint(rows) != fmt.Sprintf("[[%d 3]]", i) {
			t.Fatal(rows, err)
		}
		if c.byPlan {
			ours++
		}
	}
	if ours < 10 || ours > 16 {
		t.Errorf("%d by plans", ours)
	}
}

// The time of NOW() is that of the statement, not of its plan.
func TestEngineNow(t *testing.T) {
	c := engineTable(t)
	var times []string
	for _, second := range []int{1, 2} {
		c.exec(fmt.Sprintf("SET timestamp = %d", second))
		times = append(times, fmt.Sprint(c.mustByPlan(t, "SELECT NOW() AS n FROM t WHERE id = 1 LIMIT 1")))
	}
	if times[0] == times[1] {
		t.Error(times)
	}
}

// Comments before and after a statement, as frameworks add them, do not keep it from its plan.
func TestEngineWithComments(t *testing.T) {
	c := engineTable(t)
	for i := range 3 {
		_, rows, _, err := c.compiled(fmt.Sprintf("/* request %d */ SELECT id, 'x' FROM t WHERE id = 5 AND k != 7 LIMIT 1 /*route='/a',trace='%d'*/", i, i))
		if err != nil || fmt.Sprint(rows) != "[[5 x]]" || c.byPlan != (i > 0) {
			t.Error(rows, err, c.byPlan)
		}
	}
}

// A column without an alias has the text of its expression as its name, as the statement writes it.
func TestEngineNames(t *testing.T) {
	p := newPair(t)
	p.create()
	for _, q := range []string{
		`SELECT 007, 'a b', 'it''s', 1+01, 'x\ny', -0, UPPER('a"b'), CONCAT('["a"]', '\\'), '', 'é'`,
		`SELECT 007`, `SELECT 7`, `SELECT 07`, `SELECT CONCAT('["a"]', 'b')`, `SELECT CONCAT('["a"]', 'it''s')`,
		`SELECT CONCAT(c, '["x"]'), 05, c = 'q"' FROM t WHERE id = 1`, `SELECT id+5, c = 'a''b' FROM t WHERE id = 2 AND pad <> 'it''s'`,
		`SELECT id+5 FROM t WHERE id = 02 AND pad <> 'it''s' LIMIT 01`,
	} {
		for range 3 {
			p.run(q)
		}
	}
}

// Expressions are corrected until nothing changes, as those of go-mysql-server's plans are, and no
// column of a result is -0.
func TestEngineHasPlainZeros(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE z (id INT PRIMARY KEY, ti TIME, s VARCHAR(5), d DOUBLE, f FLOAT)")
	p.run("INSERT INTO z VALUES (1, '00:00:00', '', 0, 0), (2, '-10:00:00', '5', -0.5, 2.5)")
	for _, q := range []string{"SELECT -ti AS x FROM z WHERE id > 0", "SELECT s * -1 AS x, d * -1 AS y, -f AS z FROM z WHERE id > 0", "SELECT '' * -1 AS x"} {
		for range 3 {
			p.run(q)
		}
		if !p.compiled.byPlan {
			t.Errorf("not by a plan: %s", q)
		}
	}
}

// Comparisons of some types are left to go-mysql-server, which converts one side, or uses an index.
func TestEngineMixedTypes(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE z (id INT PRIMARY KEY, a INT, d DOUBLE, s VARCHAR(9), KEY (a), KEY (d))")
	p.run("INSERT INTO z VALUES (1, 1, 1e308, 'a'), (2, 49, 1e-320, 'b'), (3, 0, 0, NULL), (4, 2, 0, 'c')")
	for _, q := range []string{"d <=> -0.0", "a <=> X'31'", "a <=> 1", "s <=> NULL", "s <=> 'B'", "a <=> '1'", "d <=> 0", "d = 0.0 + 0", "1.5 BETWEEN d AND 9", "- -1.5 > d"} {
		for range 3 {
			p.both("SELECT id FROM z WHERE "+q+" ORDER BY id", true)
		}
	}
}

// A number whose negative is no BIGINT is left to go-mysql-server, and not taken for its own negative.
func TestEngineNegativeOfSmallest(t *testing.T) {
	c := engineTable(t)
	c.exec("CREATE TABLE b (id BIGINT PRIMARY KEY, k BIGINT NOT NULL)")
	for _, query := range []string{"SELECT COUNT(*) FROM b WHERE k > -? OR id < ?", "SELECT k FROM b WHERE id = -? OR k < ?", "SELECT k FROM b WHERE id BETWEEN -? AND ?"} {
		for i, n := range []int64{5, 6, math.MinInt64} {
			values := []fast.Value{{Number: n, IsNumber: true}, {Number: -1, IsNumber: true}}
			x := c.s.Compiled(query, true, values)
			if i == 0 {
				continue // the first of this text
			}
			_, _, done, err := c.runStatement(x, query)
			if want := n != math.MinInt64; done != want || err != nil {
				t.Errorf("%s, %d: run without go-mysql-server %v, %v", query, n, done, err)
			}
		}
	}
}
