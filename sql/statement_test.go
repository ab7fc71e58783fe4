package sql

import (
	"context"
	"reflect"
	"testing"
)

// A statement begins with nothing of the one before, also where that one has failed half-way.
func TestStatementsShareNothing(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)", "CREATE VIEW w AS SELECT * FROM t"} {
		c.exec(q)
	}
	begins := map[string]func(){
		"a context":  func() { c.in.e.NewContext(context.Background(), c.s) },
		"an attempt": c.s.Begin,
		"an answer":  c.s.Settle,
	}
	for _, q := range []string{
		"SELECT LAST_INSERT_ID(7)",
		"INSERT INTO t SELECT a.id, b.v FROM t a, t b ON DUPLICATE KEY UPDATE v = a.v + b.missing",
		"INSERT INTO t SELECT a.id, b.v FROM t a, t b ON DUPLICATE KEY UPDATE v = a.v",
		"INSERT INTO t SELECT a.id, b.v FROM t a, t b",
		"SELECT missing FROM w",
		"SELECT * FROM t WHERE v = 1.5 AND missing = 1",
		"EXPLAIN ANALYZE SELECT * FROM t",
	} {
		for name, begin := range begins {
			_, _, _ = c.run(q)
			if reflect.ValueOf(c.s.running).IsZero() {
				t.Errorf("%s: it leaves no notes", q)
			}
			begin()
			if !reflect.ValueOf(c.s.running).IsZero() {
				t.Errorf("%s: after %s there is still %+v", q, name, c.s.running)
			}
		}
	}
}

// EXPLAIN ANALYZE measures until it is done, not until its statement ends.
func TestMeasuringEnds(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"EXPLAIN ANALYZE SELECT 1", "EXPLAIN ANALYZE SELECT 1 FROM dual WHERE (SELECT 1 UNION ALL SELECT 2) = 1"} {
		_, _, _ = c.run(q) // the second fails while it runs
		if c.s.running.measuring != nil {
			t.Errorf("after %s the session still measures", q)
		}
	}
}

// The function by which an INSERT ... ON DUPLICATE KEY UPDATE carries values exists in it only.
func TestCarryEndsWithItsInsert(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)",
		"INSERT INTO t SELECT x.id, x.v FROM t x ON DUPLICATE KEY UPDATE v = t.v + x.v"} {
		c.exec(q)
	}
	if rows := c.exec("SELECT v FROM t"); rows[0][0] != int32(2) {
		t.Errorf("rows %v", rows)
	}
	if _, rows, err := c.run("SELECT `farmsql.carry`(1, 2)"); err == nil {
		t.Errorf("the next statement carries %v", rows)
	}
}

// A statement of a stored procedure has its own notes, and CALL gets its notes back afterwards.
func TestStatementsOfBodiesShareNothing(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE PROCEDURE p() BEGIN SELECT LAST_INSERT_ID(7); SELECT v AS other FROM t; END"} {
		c.exec(q)
	}
	c.exec("SELECT LAST_INSERT_ID(7)")
	if !c.s.Changing().ToldID() {
		t.Error("LAST_INSERT_ID(7) is not told")
	}
	c.exec("CALL p()")
	if c.s.Changing().ToldID() {
		t.Error("CALL tells what a statement of the procedure has told")
	}
	if columns := c.s.ResultColumns(); len(columns) == 1 && columns[0].Name == "other" {
		t.Error("the result of CALL has the columns of the procedure's last statement")
	}
}
