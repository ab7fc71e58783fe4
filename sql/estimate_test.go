package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// countedTables are orders with ten lines each, of things in a stock, all of one
// warehouse, as in TPC-C: the first part of both keys tells nothing.
func countedTables(c *client) {
	c.exec("CREATE DATABASE d")
	c.s.SetCurrentDatabase("d")
	c.exec("CREATE TABLE line (w INT, o INT, n INT, thing INT, PRIMARY KEY (w, o, n))")
	c.exec("CREATE TABLE stock (w INT, thing INT, quantity INT, PRIMARY KEY (w, thing))")
	for o := range 3 {
		var lines, things []string
		for n := range 1000 {
			lines = append(lines, fmt.Sprintf("(1, %d, %d, %d)", o*100+n/10, n%10, (o*1000+n*7)%3000))
			things = append(things, fmt.Sprintf("(1, %d, %d)", o*1000+n, n%100))
		}
		c.exec("INSERT INTO line VALUES " + strings.Join(lines, ", "))
		c.exec("INSERT INTO stock VALUES " + strings.Join(things, ", "))
	}
}

// A join looks rows up one by one if it has few to look up, and reads the other table first if the range
// of that has few rows, whatever part of a table go-mysql-server assumes a range to have.
func TestCountedRanges(t *testing.T) {
	c := newInstance(t).client("")
	countedTables(c)
	for _, test := range []struct {
		where string
		plan  string
		rows  int
	}{
		{"line.o >= 100 AND line.o < 120 AND quantity < 50", "LookupJoin", 100},
		{"line.o >= 0 AND line.o < 300 AND stock.thing < 20", "HashJoin", 20},
		{"line.o >= 500 AND line.o < 520 AND quantity < 50", "LookupJoin", 0},
		{"line.o = 7 AND line.n = 3 AND stock.thing < 4000", "LookupJoin", 1},
	} {
		query := "SELECT line.o FROM line JOIN stock ON stock.w = line.w AND stock.thing = line.thing WHERE line.w = 1 AND " + test.where
		_, rows, err := c.run("EXPLAIN PLAN " + query)
		if err != nil {
			t.Fatal(err)
		}
		if plan := fmt.Sprint(rows); !strings.Contains(plan, test.plan) {
			t.Errorf("%s: no %s in\n%s", query, test.plan, plan)
		}
		if got := c.exec(query); len(got) != test.rows {
			t.Errorf("%s: %d rows, want %d", query, len(got), test.rows)
		}
	}
}

// Keys of a hash table are counted without a look at it, and each may lead to a row.
func TestCountedHash(t *testing.T) {
	c := newInstance(t).client("")
	countedTables(c)
	c.exec("CREATE TABLE h (w INT, thing INT, PRIMARY KEY (w, thing) USING HASH)")
	c.exec("INSERT INTO h SELECT w, thing FROM stock")
	const query = "SELECT line.n FROM h JOIN line ON line.w = h.w AND line.thing = h.thing WHERE line.w = 1 AND line.o = 7 AND h.w = 1 AND h.thing IN (490, 497, 3000)"
	if got := c.exec(query); len(got) != 2 {
		t.Errorf("%d rows", len(got))
	}
	if plan := fmt.Sprint(c.exec("EXPLAIN PLAN " + query)); !strings.Contains(plan, "{[1, 1], [490, 490]}, {[1, 1], [497, 497]}, {[1, 1], [3000, 3000]}") {
		t.Errorf("three keys are not what is read of h:\n%s", plan)
	}
}

// A plan that counts keys does not make them part of the transaction.
func TestCountedRangesAreNotRead(t *testing.T) {
	in := newInstance(t)
	c, other := in.client("d"), in.client("d")
	countedTables(c)
	c.exec("START TRANSACTION")
	if _, _, err := c.run("EXPLAIN PLAN SELECT COUNT(*) FROM line JOIN stock ON stock.w = line.w AND stock.thing = line.thing WHERE line.w = 1 AND line.o = 7"); err != nil {
		t.Fatal(err)
	}
	c.exec("UPDATE stock SET quantity = 1000 WHERE w = 1 AND thing = 7")
	other.exec("DELETE FROM line WHERE w = 1 AND o = 7 AND n = 3")
	c.exec("COMMIT")
}

// Statistics of transactions leave out those in which the planner counts keys: no client runs them.
func TestCountingIsNotCounted(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	countedTables(c)
	c.exec("START TRANSACTION")
	before := in.cluster.Machine(0).Stats()
	c.exec("EXPLAIN PLAN SELECT COUNT(*) FROM line JOIN stock ON stock.w = line.w AND stock.thing = line.thing WHERE line.w = 1 AND line.o = 7")
	s := in.cluster.Machine(0).Stats().Sub(before)
	if s.LocalReads == 0 || s.Commits != 0 || s.Aborts != (txn.Stats{}).Aborts {
		t.Errorf("counted: %+v", s)
	}
	c.exec("COMMIT")
}
