package sql

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// createJoined creates tables of n rows that refer to each other: a row of l to a row of r, a tenth of
// them to none, and to others of h and c.
func createJoined(c *client, n int) {
	c.exec("CREATE TABLE l (id INT PRIMARY KEY, r INT, h BIGINT, s VARCHAR(20), x INT)")
	c.exec("CREATE TABLE r (id INT PRIMARY KEY, v VARCHAR(60), u VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, k INT, UNIQUE KEY (u))")
	c.exec("CREATE TABLE h (id INT, v INT, PRIMARY KEY (id) USING HASH)")
	c.exec("CREATE TABLE c (a INT, b INT, v INT, PRIMARY KEY (a, b))")
	random := rand.New(rand.NewPCG(1, 1))
	var l, r, h, co []string
	for i := range n {
		to := fmt.Sprint(random.IntN(n))
		if i%10 == 3 {
			to = []string{"NULL", "-1"}[i/10%2]
		}
		l = append(l, fmt.Sprintf("(%d, %s, %d, 'U%d', %d)", i, to, random.IntN(n), random.IntN(n), i%7))
		r = append(r, fmt.Sprintf("(%d, 'row %d', 'u%d', %d)", i, i, i, i%5))
		h, co = append(h, fmt.Sprintf("(%d, %d)", i, 2*i)), append(co, fmt.Sprintf("(%d, %d, %d)", i%7, i, i))
	}
	for table, values := range map[string][]string{"l": l, "r": r, "h": h, "c": co} {
		c.exec("INSERT INTO " + table + " VALUES " + strings.Join(values, ","))
	}
}

// TestJoinsOfAnotherMachine: the join of 100 rows with rows of another machine waits for that machine
// some twenty times, and not for each row; a limit reads little more than it needs.
func TestJoinsOfAnotherMachine(t *testing.T) {
	onA, onB, m := twoClients(t)
	createJoined(onA, 1000)
	trips := func(query string, rows int) (trips, reads uint64) {
		t.Helper()
		trips, reads = math.MaxUint64, math.MaxUint64
		for range 5 {
			before := m.Stats()
			if got := len(onB.exec(query)); got != rows {
				t.Fatalf("%s: %d rows", query, got)
			}
			s := m.Stats().Sub(before)
			trips, reads = min(trips, s.RoundTrips), min(reads, s.RemoteReads)
		}
		return trips, reads
	}
	idle, idleReads := trips("SELECT v FROM r WHERE id = -1", 0)
	for _, test := range []struct {
		query string
		rows  int
		most  uint64 // round trips beyond idle, or READs if the query has a limit
	}{
		{"SELECT /*+ LOOKUP_JOIN(l, r) JOIN_ORDER(l, r) */ l.id, r.v FROM l JOIN r ON r.id = l.r WHERE l.id BETWEEN 100 AND 209", 99, 32},
		{"SELECT /*+ LOOKUP_JOIN(l, r) JOIN_ORDER(l, r) */ l.id, r.v FROM l LEFT JOIN r ON r.id = l.r WHERE l.id BETWEEN 100 AND 199", 100, 32},
		{"SELECT /*+ LOOKUP_JOIN(l, r) JOIN_ORDER(l, r) */ l.id, r.v FROM l JOIN r ON r.u = l.s WHERE l.id BETWEEN 100 AND 199", 100, 32},
		{"SELECT /*+ LOOKUP_JOIN(l, h) JOIN_ORDER(l, h) */ l.id, h.v FROM l JOIN h ON h.id = l.h WHERE l.id BETWEEN 100 AND 199", 100, 36},
		{"SELECT /*+ LOOKUP_JOIN(l, c) JOIN_ORDER(l, c) */ l.id, c.v FROM l JOIN c ON c.a = l.x AND c.b = l.id WHERE l.id BETWEEN 100 AND 199", 100, 32},
		{"SELECT /*+ LOOKUP_JOIN(l, r) LOOKUP_JOIN(r, c) JOIN_ORDER(l, r, c) */ l.id, c.v FROM l LEFT JOIN r ON r.id = l.r LEFT JOIN c ON c.a = l.x AND c.b = r.id WHERE l.id BETWEEN 100 AND 199", 100, 50},
		{"SELECT /*+ LOOKUP_JOIN(l, r) JOIN_ORDER(l, r) */ l.id, r.v FROM l LEFT JOIN r ON r.id = l.r LIMIT 5", 5, 40},
	} {
		n, reads := trips(test.query, test.rows)
		if strings.Contains(test.query, "LIMIT") {
			n, idle = reads, idleReads
		}
		if n > idle+test.most {
			t.Errorf("%s: %d, and %d of a statement without rows", test.query, n, idle)
		}
	}
}

// TestJoinsAhead compares joins whose lookups are made together with those whose inner side is no
// lookup, where rows are absent, NULL, of another type, changed by the transaction itself, and read
// again.
func TestJoinsAhead(t *testing.T) {
	near, far := twoMachines(t)
	on, c := near.client(""), far.client("")
	on.exec("CREATE DATABASE d")
	on.exec("USE d")
	c.exec("USE d")
	createJoined(on, 300)
	joins := func(when string) {
		t.Helper()
		for _, j := range []struct{ hints, select_, from, on string }{
			{"LOOKUP_JOIN(l, r) JOIN_ORDER(l, r)", "l.id, r.v", "l % r", "r.id = l.r"},
			{"LOOKUP_JOIN(l, r) JOIN_ORDER(l, r)", "l.id, r.v", "l % r", "r.u = l.s AND r.k > 1"},
			{"LOOKUP_JOIN(l, h) JOIN_ORDER(l, h)", "l.id, h.v", "l % h", "h.id = l.h"},
			{"LOOKUP_JOIN(l, h) JOIN_ORDER(l, h)", "l.id, h.v", "l % h", "h.id = l.h - 20"},
			{"LOOKUP_JOIN(l, c) JOIN_ORDER(l, c)", "l.id, c.v", "l % c", "c.b = l.id AND c.a = l.x"},
			{"LOOKUP_JOIN(l, c) JOIN_ORDER(l, c)", "l.id, c.v", "l % c", "c.a = l.x AND c.b = l.id AND l.id > c.v - l.x"},
		} {
			for _, kind := range []string{"JOIN", "LEFT JOIN"} {
				from := strings.ReplaceAll(j.from, "%", kind)
				for _, rest := range []string{" ORDER BY l.id", " WHERE l.x IN (1, 3) ORDER BY l.id", " WHERE l.id > 20 ORDER BY l.id LIMIT 7"} {
					got := c.shown("SELECT /*+ " + j.hints + " */ " + j.select_ + " FROM " + from + " ON " + j.on + rest)
					// An expression of the inner side's columns is looked up in no index.
					plain := strings.NewReplacer("r.id =", "r.id + 0 =", "r.u =", "COALESCE(r.u) =", "h.id =", "h.id + 0 =", "c.a =", "c.a + 0 =", "c.b =", "c.b + 0 =").Replace(j.on)
					if want := c.shown("SELECT " + j.select_ + " FROM " + from + " ON " + plain + rest); got != want {
						t.Errorf("%s, %s ON %s%s: got %q, want %q", when, from, j.on, rest, got, want)
					}
				}
			}
		}
	}
	joins("autocommitted")
	c.exec("BEGIN")
	joins("in a transaction")
	c.exec("DELETE FROM r WHERE id BETWEEN 50 AND 99")
	c.exec("UPDATE r SET v = 'changed, and much longer' WHERE k = 2 AND id < 200")
	c.exec("INSERT INTO r VALUES (-1, 'new', 'none', 1)")
	c.exec("UPDATE h SET id = id + 1000 WHERE id > 250")
	joins("after changes of the transaction itself")
	c.exec("ROLLBACK")
	joins("rolled back")
}

// TestSteady: rows are read ahead only for expressions that do not depend on when they are evaluated.
func TestSteady(t *testing.T) {
	column, constant := expression.NewGetField(0, types.Int64, "a", true), expression.NewLiteral(int64(1), types.Int64)
	variable := expression.NewUserVar("n")
	random, err := function.NewRand(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		e    gms.Expression
		want bool
	}{
		{column, true}, {expression.NewEquals(column, constant), true}, {expression.NewAnd(expression.NewNot(expression.NewEquals(column, constant)), expression.NewIsNull(column)), true},
		{expression.NewInTuple(column, expression.NewTuple(constant, constant)), true}, {expression.NewPlus(column, constant), true},
		{variable, false}, {random, false}, {expression.NewEquals(column, variable), false}, {expression.NewNot(expression.NewGreaterThan(random, constant)), false},
		{expression.NewInTuple(column, expression.NewTuple(constant, variable)), false},
	} {
		if got := isSteady(test.e); got != test.want {
			t.Errorf("%s: %v", test.e, got)
		}
	}
}

// TestJoinsConflict: an open transaction depends on the inner rows that it has joined.
func TestJoinsConflict(t *testing.T) {
	near, far := twoMachines(t)
	b, a := near.client(""), far.client("")
	b.exec("CREATE DATABASE d")
	b.exec("USE d")
	a.exec("USE d")
	createJoined(b, 50)
	b.exec("UPDATE l SET h = id + 10 WHERE id < 30")
	for i, test := range []struct {
		change    string
		conflicts bool
	}{{"UPDATE h SET v = v + 1 WHERE id = 25", true}, {"DELETE FROM h WHERE id = 26", true}, {"UPDATE h SET v = v + 1 WHERE id = 45", false}} {
		a.exec("BEGIN")
		a.exec("SELECT /*+ LOOKUP_JOIN(l, h) JOIN_ORDER(l, h) */ l.id, h.v FROM l JOIN h ON h.id = l.h WHERE l.id < 30")
		b.exec(test.change)
		a.exec(fmt.Sprintf("INSERT INTO c VALUES (1000, %d, 1)", i))
		if _, _, err := a.run("COMMIT"); (err != nil) != test.conflicts {
			t.Errorf("%s: %v", test.change, err)
		}
	}
}

// A join of an open transaction that locks its rows looks nothing up ahead: it waits for its turn at
// each row, and what it had read before would be older than the row is then.
func TestLockingJoinOfAnotherMachine(t *testing.T) {
	onA, onB, m := twoClients(t)
	createJoined(onA, 100)
	for query, ahead := range map[string]bool{
		"SELECT r.k FROM l JOIN r ON r.id = l.r":            true,
		"SELECT r.k FROM l JOIN r ON r.id = l.r FOR UPDATE": false,
	} {
		onB.exec("BEGIN")
		before := m.Stats()
		onB.s.SetForUpdate(!ahead)
		rows := len(onB.exec(query))
		onB.s.SetForUpdate(false)
		trips := m.Stats().Sub(before).RoundTrips
		onB.exec("ROLLBACK")
		if ahead == (trips >= uint64(rows)) {
			t.Errorf("%s: %d round trips for %d rows", query, trips, rows)
		}
	}
}
