package sql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/fast"
)

// listed is a list of every third number from lo on, n of them, in descending order.
func listed(lo, n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, lo+3*(n-1-i))
	}
	return strings.Join(all, ", ")
}

// TestListsOfAnotherMachine: a list of 100 keys of another machine waits for that machine a few
// times, and not for each key and each row, whichever way it is executed.
func TestListsOfAnotherMachine(t *testing.T) {
	onA, onB, m := twoClients(t)
	onA.exec("CREATE TABLE t (id INT PRIMARY KEY, u VARCHAR(20) NOT NULL UNIQUE, v VARCHAR(20), h INT, UNIQUE KEY (h) USING HASH)")
	onA.exec("CREATE TABLE c (a INT, b INT, v VARCHAR(20), PRIMARY KEY (a, b))")
	onA.exec("CREATE TABLE h (id INT, v VARCHAR(20), PRIMARY KEY (id) USING HASH)")
	const rows = 1000
	var t1, t2, t3 []string
	for i := range rows {
		i = i * 7 % rows
		t1, t2, t3 = append(t1, fmt.Sprintf("(%d, 'u%d', 'row %d', %d)", i, i, i, i)), append(t2, fmt.Sprintf("(%d, %d, 'row %d')", i/500, i, i)), append(t3, fmt.Sprintf("(%d, 'row %d')", i, i))
	}
	onA.exec("INSERT INTO t VALUES " + strings.Join(t1, ","))
	onA.exec("INSERT INTO c VALUES " + strings.Join(t2, ","))
	onA.exec("INSERT INTO h VALUES " + strings.Join(t3, ","))
	// trips is how often a statement, planned and compiled if it can be, waits for other machines.
	trips := func(query string, rows int) (planned, compiled uint64) {
		t.Helper()
		planned, compiled = math.MaxUint64, math.MaxUint64
		for range 6 {
			before := m.Stats()
			if got := len(onB.exec(query)); rows >= 0 && got != rows {
				t.Fatalf("%s: %d rows", query, got)
			}
			planned = min(planned, m.Stats().Sub(before).RoundTrips)
			before = m.Stats()
			if _, _, _, err := onB.compiled(query); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			compiled = min(compiled, m.Stats().Sub(before).RoundTrips)
		}
		return planned, compiled
	}
	idle, idleCompiled := trips("SELECT v FROM t WHERE id = -1", 0)
	for _, test := range []struct {
		query string
		rows  int
		most  uint64 // beyond idle
	}{
		{"SELECT v FROM t WHERE id IN (" + listed(100, 100, "%d") + ")", 100, 7},
		{"SELECT v FROM t WHERE id IN (" + listed(100, 100, "%d") + ") ORDER BY v", 100, 7},
		{"SELECT v FROM t WHERE id IN (" + listed(100, 100, "%d") + ") FOR UPDATE", 100, 7},
		{"SELECT v FROM t WHERE u IN (" + listed(100, 100, "'u%d'") + ")", 100, 7},
		{"SELECT v FROM t WHERE h IN (" + listed(100, 100, "%d") + ")", 100, 12},
		{"SELECT v FROM h WHERE id IN (" + listed(100, 100, "%d") + ")", 100, 12},
		{"SELECT v FROM t WHERE id IN (" + listed(5000, 100, "%d") + ")", 0, 4},
		{"SELECT v FROM c WHERE a = 0 AND b IN (" + listed(100, 100, "%d") + ")", 100, 7},
		{"SELECT v FROM c WHERE (a, b) IN (" + listed(100, 100, "(0, %d)") + ")", 100, 7},
		{"UPDATE t SET v = 'new' WHERE id IN (" + listed(100, 100, "%d") + ")", -1, 8},
	} {
		planned, compiled := trips(test.query, test.rows)
		if planned > idle+test.most {
			t.Errorf("%s, planned: %d round trips, and %d of a statement without rows", test.query, planned, idle)
		}
		if compiled > planned || compiled < planned && compiled > idleCompiled+test.most {
			t.Errorf("%s, compiled: %d round trips, and %d of a statement without rows", test.query, compiled, idleCompiled)
		}
	}
}

// TestCompiledLists: lists of values of a unique key run compiled, and as if they did not.
func TestCompiledLists(t *testing.T) {
	p := newPair(t)
	p.create()
	p.must(
		"SELECT c FROM t WHERE id IN (5, 3, 400, 7)", "SELECT * FROM t WHERE id IN (9)", "SELECT id, pad, c FROM t WHERE id IN (12, 12, 3, 12, 40)", "SELECT c FROM t WHERE (id IN (1000, 2000))",
		"SELECT c FROM t WHERE id IN (-5, 5, -1)", "SELECT SUM(k) FROM t WHERE id IN (3, 9, 27, 81)", "SELECT SUM(k) FROM t WHERE id IN (300, 900)",
		"SELECT c FROM t WHERE id IN (30, 3, 12, 25) ORDER BY c DESC", "SELECT DISTINCT k FROM t WHERE id IN (1, 8, 15, 22, 2) ORDER BY k",
		"SELECT c FROM t WHERE id IN ("+listed(1, 60, "%d")+")", "SELECT * FROM t WHERE id IN (3, 1, 2) FOR UPDATE",
		"SELECT * FROM u WHERE a = 1 AND b IN (8, 3, 13, 900)", "SELECT v FROM u WHERE a IN (-1, 0, 1, 2) AND b = 8", "SELECT * FROM u WHERE d IN ('D5', 'd7', 'd5', 'none')",
		"SELECT * FROM n WHERE s IN ('s5', 'S5', 'STRASSE', 'ab', '')", "SELECT s FROM n WHERE s IN ('AB  ', 'ab', 's1')", "SELECT * FROM n WHERE s IN ('toolongforit', 's3')",
		"SELECT x FROM h WHERE id IN (5, -3, 5, 1000, 0)", "SELECT id, x FROM h WHERE w IN ('w5', 'W6', 'w7')",
	)
	// These are planned: the literals are not values of the columns, the keys are not whole unique
	// keys, or the statement has further clauses.
	for _, q := range []string{
		"SELECT c FROM t WHERE id IN (5, NULL, 3)", "SELECT c FROM t WHERE id IN ('5', 6, '7x')", "SELECT c FROM t WHERE id IN (5, 99999999999, 3)", "SELECT c FROM t WHERE id IN (5.0, 3.5)", "SELECT c FROM t WHERE id IN (NULL)",
		"SELECT id FROM t WHERE k IN (3, 5)", "SELECT * FROM u WHERE a IN (1, 2)", "SELECT * FROM u WHERE a IN (1, 2) AND b IN (3, 8)", "SELECT * FROM u WHERE (a, b) IN ((1, 3), (2, 4), (1, 3))",
		"SELECT * FROM u WHERE a = 1 AND b IN (-1, 8)", "SELECT * FROM u WHERE d IN ('D5', NULL)", "SELECT * FROM u WHERE d IN (5, 'D6')",
		"SELECT * FROM t WHERE id IN (3, 5) AND k = 2", "SELECT c FROM t WHERE id NOT IN (3, 5) AND id < 9", "SELECT c FROM t WHERE id IN (5, 3, 9, 1) ORDER BY id DESC LIMIT 2",
		"SELECT c FROM t WHERE id IN (5, 3, 9, 1) LIMIT 2", "SELECT c FROM t WHERE id IN (SELECT k FROM t WHERE id < 5)", "UPDATE t SET k = k + 1 WHERE id IN (3, 5, 500)", "DELETE FROM t WHERE id IN (4, 6, 500)",
	} {
		p.run(q)
		p.run(q)
		if p.run(q) {
			t.Errorf("compiled: %s", q)
		}
	}
	p.same("t")
	p.mustBind("SELECT c FROM t WHERE id IN (?, ?, ?)", intValue(5), intValue(3), intValue(5))
	p.mustBind("SELECT * FROM u WHERE d IN (?, 'D6')", bytesValue("D9"))
	p.mustBind("SELECT * FROM u WHERE a = ? AND b IN (?, ?)", intValue(1), intValue(8), intValue(3))
	p.bind("SELECT c FROM t WHERE id IN (?, ?, ?)", intValue(5), fast.Value{IsNull: true}, bytesValue("7"))
}

// TestListsInTransactions: a list finds what the transaction has inserted, changed and deleted, in
// autocommitted statements and in open transactions, compiled and planned, in rows that are read in
// several batches.
func TestListsInTransactions(t *testing.T) {
	p := newPair(t)
	p.create()
	var values []string
	for i := range 600 {
		values = append(values, fmt.Sprintf("(%d, %d, 'v%d')", 1000+i, i%7, i))
	}
	p.run("INSERT INTO t (id, k, c) VALUES " + strings.Join(values, ","))
	list := listed(1000, 180, "%d")
	for _, q := range []string{
		"SELECT id, c FROM t WHERE id IN (" + list + ")", "SELECT id, c FROM t WHERE id IN (" + list + ") AND k > 2",
		"BEGIN", "SELECT id, c FROM t WHERE id IN (" + list + ")", "INSERT INTO t (id, c) VALUES (1700, 'in')", "DELETE FROM t WHERE id = 1003", "UPDATE t SET id = 1801 WHERE id = 1006",
		"UPDATE t SET c = 'changed', pad = 'much longer' WHERE id IN (1009, 1012, 1700)", "SELECT id, c, pad FROM t WHERE id IN (1700, 1003, 1006, 1801, 1009, 1000, 1012)",
		"SELECT id, c FROM t WHERE id IN (" + list + ", 1700, 1801)", "SELECT id, c FROM t WHERE id IN (" + list + ", 1700, 1801) FOR UPDATE",
		"SAVEPOINT s", "DELETE FROM t WHERE id IN (" + listed(1000, 100, "%d") + ")", "SELECT COUNT(*), MAX(id) FROM t WHERE id IN (" + list + ")", "ROLLBACK TO s",
		"SELECT COUNT(*), MAX(id) FROM t WHERE id IN (" + list + ")", "COMMIT", "SELECT id, c FROM t WHERE id IN (" + list + ", 1700, 1801)",
		"INSERT INTO t (id, c) SELECT id + 1000, c FROM t WHERE id IN (" + list + ")", "SELECT id, c FROM t WHERE id IN (" + listed(2000, 180, "%d") + ") LIMIT 40",
		"UPDATE t SET id = id + 3 WHERE id IN (" + listed(2000, 180, "%d") + ") ORDER BY id DESC", "SELECT id, c FROM t WHERE id IN (" + listed(2000, 182, "%d") + ")",
	} {
		p.run(q)
	}
	p.same("t")
}

// TestListsInProcedures: parameters and variables in a list, whose rows are changed while a cursor is
// read.
func TestListsInProcedures(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	c.exec("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40)")
	c.exec("CREATE PROCEDURE p(a INT, b INT) BEGIN SELECT v FROM t WHERE id IN (b, a, NULL, b); END")
	if got, want := c.shown("CALL p(1, 3)"), c.shown("SELECT v FROM t WHERE id = 1 OR id = 3"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.exec(`CREATE PROCEDURE q() BEGIN DECLARE done INT DEFAULT 0; DECLARE x INT; DECLARE n INT DEFAULT 0;
		DECLARE c CURSOR FOR SELECT v FROM t WHERE id IN (1, 2, 3, 4); DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
		OPEN c; l: LOOP FETCH c INTO x; IF done THEN LEAVE l; END IF; DELETE FROM t WHERE id > 2; SET n = n + x; END LOOP; SELECT n; END`)
	if got := c.exec("CALL q()"); fmt.Sprint(got) != "[[100]]" {
		t.Errorf("a cursor that was open when rows were deleted: %v", got)
	}
}

// TestListsConflict: an open transaction has read the keys of its list, those without a row as well,
// and no others.
func TestListsConflict(t *testing.T) {
	in := newInstance(t)
	a, b := in.client(""), in.client("")
	a.exec("CREATE DATABASE d")
	a.exec("USE d")
	b.exec("USE d")
	a.exec("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	a.exec("CREATE TABLE other (id INT PRIMARY KEY)")
	a.exec("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
	n := 0
	for _, query := range []string{"SELECT v FROM t WHERE id IN (1, 3, 9)", "SELECT v FROM t WHERE id IN (1, 3, 9) FOR UPDATE", "SELECT v + 0 FROM t WHERE id IN (1, 3, 9)"} {
		for change, conflicts := range map[string]bool{
			"UPDATE t SET v = v + 1 WHERE id = 3": true, "INSERT INTO t VALUES (9, 9)": true,
			"UPDATE t SET v = v + 1 WHERE id = 2": false, "INSERT INTO t VALUES (8, 8)": false,
		} {
			for range 3 { // planned, compiled for the first time, compiled
				a.exec("BEGIN")
				if _, _, _, err := a.compiled(query); err != nil {
					t.Fatal(err)
				}
				b.exec(change)
				a.exec(fmt.Sprintf("INSERT INTO other VALUES (%d)", n))
				n++
				if _, _, err := a.run("COMMIT"); (err != nil) != conflicts {
					t.Errorf("%s, then %s: %v", query, change, err)
				}
				b.exec("DELETE FROM t WHERE id > 7")
			}
		}
	}
}

// TestListsAreGivenUp: a list that is limited reads little more than what is asked for, and one whose
// statement is cancelled ends.
func TestListsAreGivenUp(t *testing.T) {
	onA, onB, m := twoClients(t)
	onA.exec("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
	var values []string
	for i := range 3000 {
		values = append(values, fmt.Sprintf("(%d, 'row %d')", i, i))
	}
	onA.exec("INSERT INTO t VALUES " + strings.Join(values, ","))
	read := func(query string) (least uint64) {
		t.Helper()
		least = math.MaxUint64
		for range 4 {
			before := m.Stats()
			onB.exec(query)
			least = min(least, m.Stats().Sub(before).RemoteReads)
		}
		return least
	}
	idle := read("SELECT v FROM t WHERE id = -1")
	list := listed(0, 150, "%d")
	if n := read("SELECT v FROM t WHERE id IN (" + list + ") LIMIT 1"); n > idle+16 {
		t.Errorf("%d READs for one row of a list, %d for a key that is not there", n, idle)
	}
	if n := read("SELECT v FROM t WHERE id IN (" + list + ") LIMIT 10"); n > idle+80 {
		t.Errorf("%d READs for ten rows of a list, %d for a key that is not there", n, idle)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := onB.runWithin(ctx, "SELECT v FROM t WHERE id IN ("+list+")"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, the statement ends with %v", err)
	}
}
