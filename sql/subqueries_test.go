package sql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/myerr"
)

// subqueryTables returns a client of a new database with tables for subqueries.
func subqueryTables(t *testing.T) *client {
	t.Helper()
	c := engineTable(t)
	c.exec("CREATE TABLE o (id INT PRIMARY KEY, t INT, s VARCHAR(20), v BIGINT UNSIGNED, d DECIMAL(6,2), KEY (t), KEY (s))")
	c.exec("INSERT INTO o VALUES (1, 3, 'S1', 5, 1.5), (2, 3, 's1', 3, 2), (3, NULL, 's2', 18446744073709551615, NULL), (4, 9, NULL, NULL, 7.25)")
	return c
}

// What subqueries in expressions return, by plans of our own, is what MariaDB 10.11 returns.
func TestSubqueries(t *testing.T) {
	c := subqueryTables(t)
	for _, test := range []struct{ query, want string }{
		{"SELECT id, (SELECT COUNT(*) FROM o WHERE o.t = t.id) FROM t WHERE id IN (3, 4, 9)", "[[3 2] [4 0] [9 1]]"},
		{"SELECT id, (SELECT o.d FROM o WHERE o.id = t.id) FROM t WHERE id BETWEEN 1 AND 5", "[[1 1.5] [2 2] [3 <nil>] [4 7.25] [5 <nil>]]"},
		{"SELECT id, (SELECT id FROM o WHERE o.t = t.id ORDER BY id DESC LIMIT 1) AS last FROM t WHERE id < 4 ORDER BY last, id", "[[0 <nil>] [1 <nil>] [2 <nil>] [3 2]]"},
		{"SELECT id FROM o WHERE s = (SELECT s FROM t WHERE id = 1)", "[[1] [2]]"},
		{"SELECT id FROM o WHERE d > (SELECT AVG(d) FROM o)", "[[4]]"},
		{"SELECT id FROM t WHERE id = (SELECT MAX(t) FROM o) OR k = (SELECT MAX(id) FROM o WHERE id > 100)", "[[9]]"},
		{"SELECT id FROM t WHERE id < 12 AND (SELECT COUNT(*) FROM o WHERE o.t = t.id) > 1", "[[3]]"},
		{"SELECT (SELECT MAX(id) FROM o WHERE t = 3)", "[[2]]"},
		{"SELECT EXISTS(SELECT 1 FROM o WHERE t = 9)", "[[true]]"},
		{"SELECT o.id, (SELECT t.id FROM t WHERE t.s = o.s AND t.id < 3) FROM o", "[[1 1] [2 1] [3 2] [4 <nil>]]"},
		// IN is not true or false beside NULL, unless there are no rows.
		{"SELECT id, t IN (SELECT id FROM t WHERE k = 3) AS x, t NOT IN (SELECT id FROM t WHERE k = 3) AS y FROM o", "[[1 true false] [2 true false] [3 <nil> <nil>] [4 false true]]"},
		{"SELECT id, t IN (SELECT t FROM o WHERE id >= 3) AS x FROM o", "[[1 <nil>] [2 <nil>] [3 <nil>] [4 true]]"},
		{"SELECT id, t IN (SELECT t FROM o WHERE id > 9) AS x FROM o", "[[1 false] [2 false] [3 false] [4 false]]"},
		{"SELECT id FROM o WHERE t NOT IN (SELECT t FROM o WHERE id > 9)", "[[1] [2] [3] [4]]"},
		{"SELECT id FROM o WHERE t NOT IN (SELECT t FROM o WHERE id >= 3)", "[]"},
		{"SELECT id FROM o WHERE t NOT IN (SELECT k FROM t WHERE id = 19)", "[[1] [2]]"},
		{"SELECT id FROM o WHERE id = 1 OR s IN (SELECT s FROM t WHERE id = 2)", "[[1] [3]]"},
		{"SELECT id FROM t WHERE k IN (SELECT v FROM o WHERE id < 3) AND id < 10", "[[3] [5]]"},
		{"SELECT id FROM t WHERE id = 7 AND EXISTS (SELECT 1 FROM o WHERE t = 3)", "[[7]]"},
		{"SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM o WHERE t = 3)", "[[100]]"},
		{"SELECT k, COUNT(*) FROM t WHERE id IN (SELECT t FROM o WHERE id < 9) GROUP BY k ORDER BY k", "[[3 1] [9 1]]"},
		{"SELECT id, (SELECT (SELECT COUNT(*) FROM t x WHERE x.id = o.id AND x.k <= t.k) FROM o WHERE o.t = t.id LIMIT 1) FROM t WHERE id = 3", "[[3 1]]"},
	} {
		if rows := c.mustByPlan(t, test.query); fmt.Sprint(rows) != test.want {
			t.Errorf("%s: %v, want %s", test.query, rows, test.want)
		}
	}
}

// What fails in a subquery, or is no value that plans compare, is left to go-mysql-server.
func TestSubqueriesLeft(t *testing.T) {
	c := subqueryTables(t)
	for range 3 {
		for _, query := range []string{
			"SELECT id, (SELECT id FROM o WHERE o.t = t.id) FROM t WHERE id < 9", "SELECT id FROM t WHERE id = (SELECT t FROM o WHERE id < 3)",
		} {
			if _, _, _, err := c.compiled(query); myerr.Of(err) == nil || myerr.Of(err).Num != 1242 {
				t.Errorf("%s: %v, want 1242", query, err)
			}
		}
		const tooLarge = "SELECT id, (SELECT COUNT(*) FROM t WHERE t.id = o.v) FROM o"
		if _, rows, _, err := c.compiled(tooLarge); err != nil || c.byPlan || fmt.Sprint(rows) != "[[1 1] [2 1] [3 0] [4 0]]" {
			t.Error(rows, err, c.byPlan)
		}
		const tooLargeInList = "SELECT id FROM t WHERE k NOT IN (SELECT v FROM o WHERE id BETWEEN 2 AND 3) AND id < 3"
		if _, rows, _, err := c.compiled(tooLargeInList); err != nil || c.byPlan || fmt.Sprint(rows) != "[[0] [1] [2]]" {
			t.Error(rows, err, c.byPlan)
		}
		const tooLargeOnce = "SELECT id FROM t WHERE id = (SELECT v FROM o WHERE id = 3)"
		if _, rows, _, err := c.compiled(tooLargeOnce); err != nil || c.byPlan || len(rows) > 0 {
			t.Error(rows, err, c.byPlan)
		}
	}
	c.exec("INSERT INTO o (id, s) VALUES (5, 'a\ufffd')") // which is compared by go-mysql-server only
	for range 3 {
		for _, query := range []string{"SELECT t.id, t.s IN (SELECT s FROM o WHERE id > 2) FROM t WHERE id < 3", "SELECT o.id, o.s IN (SELECT s FROM t WHERE id < 3) FROM o"} {
			if _, _, _, err := c.compiled(query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
	}
}

// The name of a column has the literals of its subquery, as the statement writes them.
func TestSubqueryNames(t *testing.T) {
	p := newPair(t)
	p.create()
	for _, q := range []string{
		"SELECT EXISTS(SELECT 1 FROM t WHERE id = 1)", "SELECT EXISTS(SELECT 1 FROM t WHERE id = 2)", "SELECT EXISTS(SELECT 1 FROM t WHERE id = 02)", "SELECT exists(SELECT 1 FROM t WHERE c = 'it''s')",
		"SELECT id, (SELECT MAX(k) FROM t WHERE k < 5), (SELECT MAX(k) FROM t WHERE k < 6), id + 1 FROM p WHERE id < 3 ORDER BY id", "SELECT *, (SELECT MAX(k) FROM t WHERE k < -5) FROM p WHERE id < 3 ORDER BY id",
		"SELECT *, (SELECT MAX(k) FROM t WHERE k < -6) FROM p WHERE id < 3 ORDER BY id", "SELECT (SELECT `c` FROM t WHERE id = 1 AND pad <> '?`'), 1", "SELECT (SELECT `c` FROM t WHERE id = 2 AND pad <> '`?'), 2",
		"SELECT * FROM (SELECT id, (SELECT MAX(k) FROM t WHERE k < 3) FROM p WHERE id < 3) d ORDER BY id", "SELECT * FROM (SELECT id, (SELECT MAX(k) FROM t WHERE k < 4) FROM p WHERE id < 3) d ORDER BY id",
		"SELECT (SELECT MAX(k) FROM t WHERE k < 4) UNION ALL SELECT 3", "SELECT (SELECT MAX(k) FROM t WHERE k < 5) UNION ALL SELECT 3", "SELECT NOT EXISTS(SELECT 1 FROM t WHERE id = 1)", "SELECT NOT EXISTS(SELECT 1 FROM t WHERE id = 2)",
	} {
		for range 3 {
			p.run(q)
		}
	}
	for i := range int64(4) {
		p.bind("SELECT EXISTS(SELECT 1 FROM t WHERE id = ?)", boundValue(i))
		p.bind("SELECT (SELECT MAX(k) FROM t WHERE k < ? AND id > 3), ? FROM p WHERE id = ?", boundValue(i), boundValue(i), boundValue(i))
	}
	c := subqueryTables(t)
	for _, at := range []int{3, 9, 7} {
		query := fmt.Sprintf("SELECT EXISTS(SELECT 1 FROM o WHERE t = %d)", at)
		schema, _, _, err := c.compiled(query)
		if want := strings.TrimPrefix(query, "SELECT "); err != nil || schema[0].Name != want {
			t.Errorf("%v, %s is named %s", err, want, schema[0].Name)
		}
	}
	if !c.byPlan {
		t.Error("not by a plan")
	}
}

func boundValue(n int64) fast.Value { return fast.Value{Number: n, IsNumber: true, IsBound: true} }

// A transaction sees its own rows in subqueries.
func TestSubqueriesInTransaction(t *testing.T) {
	c := subqueryTables(t)
	const query = "SELECT id, (SELECT COUNT(*) FROM o WHERE o.t = t.id), id IN (SELECT t FROM o WHERE id > 4) FROM t WHERE id = 3"
	c.mustByPlan(t, query)
	c.exec("BEGIN")
	c.exec("INSERT INTO o (id, t) VALUES (8, 3)")
	if rows := c.mustByPlan(t, query); fmt.Sprint(rows) != "[[3 3 true]]" {
		t.Error(rows)
	}
	c.exec("ROLLBACK")
	if rows := c.mustByPlan(t, query); fmt.Sprint(rows) != "[[3 2 false]]" {
		t.Error(rows)
	}
}

// What a subquery has read in a transaction must hold at its commit.
func TestSubqueriesAreRead(t *testing.T) {
	c := subqueryTables(t)
	const query = "SELECT (SELECT COUNT(*) FROM o WHERE t = 3)"
	c.mustByPlan(t, query)
	c.exec("BEGIN")
	c.mustByPlan(t, query)
	c.exec("UPDATE t SET pad = 'q' WHERE id = 1")
	c.in.client("d").exec("INSERT INTO o (id, t) VALUES (9, 3)")
	if _, _, err := c.run("COMMIT"); !myerr.IsConflict(err) {
		t.Errorf("a row was added to those that a subquery has counted: %v", err)
	}
}

// The privileges for the tables of subqueries are asked for each time.
func TestSubqueriesAskForPrivileges(t *testing.T) {
	in := openWith(t, testConfig, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	root := in.client("")
	root.exec("CREATE DATABASE d")
	root.exec("CREATE TABLE d.t (id INT PRIMARY KEY, k INT)")
	root.exec("CREATE TABLE d.secret (id INT PRIMARY KEY, k INT)")
	root.exec("INSERT INTO d.t VALUES (1, 1)")
	root.exec("CREATE USER joe@localhost")
	root.exec("GRANT SELECT ON d.t TO joe@localhost")
	joe := in.client("d")
	joe.s.SetClient(gms.Client{User: "joe", Address: "localhost"})
	queries := []string{
		"SELECT k, (SELECT COUNT(*) FROM d.secret WHERE id = 1) FROM d.t WHERE id = 1", "SELECT k, COALESCE((SELECT MAX(k) FROM d.secret s WHERE s.id = t.id), 0) FROM d.t WHERE id = 1",
		"SELECT EXISTS(SELECT 1 FROM d.secret)", "SELECT id FROM d.t WHERE k IN (SELECT k FROM d.secret WHERE id = 1)", "SELECT id FROM d.t WHERE id = 1 OR k > (SELECT MAX(k) FROM d.secret)",
		"SELECT (SELECT (SELECT COUNT(*) FROM d.secret))",
	}
	for _, query := range queries {
		root.mustByPlan(t, query)
		for range 3 {
			if _, _, _, err := joe.compiled(query); myerr.Of(err) == nil || myerr.Of(err).Num != 1142 {
				t.Errorf("%s: got %v, want 1142", query, err)
			}
		}
	}
	root.exec("GRANT SELECT ON d.secret TO joe@localhost")
	for _, query := range queries {
		joe.mustByPlan(t, query)
	}
}

// The memory of what subqueries keep is bounded, and given back.
func TestSubqueryMemory(t *testing.T) {
	m := boundedMemory(1<<20, math.MaxInt64)
	c := openBounded(t, m)
	for _, query := range []string{
		"SELECT k FROM t WHERE k = 5 OR s IN (SELECT s FROM t WHERE k >= 0)", "SELECT k, s IN (SELECT s FROM t WHERE k >= 0) AS x FROM t WHERE k = 5",
		"SELECT k, (SELECT COUNT(DISTINCT s) FROM t WHERE k >= 0) FROM t WHERE k = 5",
	} {
		for range 3 {
			if _, _, _, err := c.compiled(query); myerr.Of(err) == nil || myerr.Of(err).Num != myerr.StatementMemory.Number {
				t.Errorf("%s: %.200v", query, err)
			}
			c.s.Settle()
			if n := m.Used(); n != 0 {
				t.Fatalf("%s: %d bytes are still held", query, n)
			}
		}
	}
	for range 3 { // what is kept for a row around is given back before the next
		c.mustByPlan(t, "SELECT k, (SELECT COUNT(DISTINCT x.s) FROM t x WHERE x.k = t.k) FROM t WHERE k = 5 AND id < 3000")
		c.s.Settle()
	}
	if n := m.Used(); n != 0 {
		t.Errorf("%d bytes are still held", n)
	}
}

// A statement ends in its subqueries when its context does.
func TestSubqueriesEnd(t *testing.T) {
	c := subqueryTables(t)
	for _, query := range []string{
		"SELECT id FROM t WHERE (SELECT COUNT(*) FROM o WHERE o.t = t.id) > 9", "SELECT id FROM t WHERE id = (SELECT MAX(t) FROM o)", "SELECT id FROM t WHERE id IN (SELECT t FROM o WHERE id > 1)",
		"SELECT (SELECT COUNT(*) FROM t)", "SELECT id, t IN (SELECT t FROM o) AS x FROM o",
	} {
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
