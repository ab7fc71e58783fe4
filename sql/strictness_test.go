package sql

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
)

// TestDivisions: to divide by zero is an error in a change, unless it is one with IGNORE or
// sql_mode says otherwise.
func TestDivisions(t *testing.T) {
	const left, all = "select * from t", "1 | 1\n2 | 2\n"
	for _, s := range []struct{ setup, change, want, left string }{
		{"", "insert into t values (3, 1/0)", "error 1365", all},
		{"", "insert into t values (3, 3), (4, 5 div 0)", "error 1365", all},
		{"", "insert into t select 3, 1 % 0", "error 1365", all},
		{"", "insert into t select id + 2, a / (id - 2) from t", "error 1365", all},
		{"", "insert into t values (1, 1) on duplicate key update a = a / 0", "error 1365", all},
		{"", "replace into t values (1, mod(1, 0))", "error 1365", all},
		{"", "update t set a = a / (2 - id)", "error 1365", all},
		{"", "update t set a = 5 where a / 0 is null", "error 1365", all},
		{"", "update t set a = 5 where a / 0 = 1", "error 1365", all},
		{"", "delete from t where a / 0 is null", "error 1365", all},
		{"create trigger b before insert on t for each row set new.a = new.a / 0", "insert into t values (3, 3)", "error 1365", all},
		{"", "insert ignore into t values (3, 1/0)", "ok", all + "3 | NULL\n"},
		{"", "update ignore t set a = a / 0 where id = 1", "ok", "1 | NULL\n2 | 2\n"},
		{"set sql_mode = 'STRICT_TRANS_TABLES'", "insert into t values (3, 1/0)", "ok", all + "3 | NULL\n"},
		{"set sql_mode = 'ERROR_FOR_DIVISION_BY_ZERO'", "insert into t values (3, 1/0)", "ok", all + "3 | NULL\n"},
		{"set sql_mode = 'TRADITIONAL'", "insert into t values (3, 1/0)", "error 1365", all},
		{"select 1/0", "insert into t values (3, 1)", "ok", all + "3 | 1\n"},
	} {
		t.Run(s.change, func(t *testing.T) {
			c := newInstance(t).client("")
			for _, q := range []string{"create database d", "use d", "create table t (id int primary key, a int)", "insert into t values (1,1),(2,2)", s.setup} {
				if q != "" {
					c.exec(q)
				}
			}
			got := "ok"
			if _, _, err := c.run(s.change); err != nil {
				got = fmt.Sprintf("error %d", myerr.Of(err).Num)
			}
			if got != s.want {
				t.Errorf("got %q, want %q", got, s.want)
			}
			if got := c.shown(left); got != s.left {
				t.Errorf("there are %q, want %q", got, s.left)
			}
		})
	}
}

// A compiled change is not refused, and planned, because a statement before it has divided by zero.
func TestDivisionOfTheStatementBefore(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"create database d", "use d", "create table t (id int primary key, a int)", "insert into t values (1,1),(2,2)"} {
		c.exec(q)
	}
	const change = "update t set a = 5 where id = 1"
	compiled := false
	for range 3 {
		c.exec("update t set a = a + 1 where a / 1 > 0") // is planned, and strict
		c.exec("select 1/0")
		var err error
		if _, _, compiled, err = c.compiledWith(change, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !compiled {
		t.Error("the change is not compiled")
	}
}

// The REPLACEs of a procedure are statements of their own: each tells its number.
func TestReplacesOfAProcedure(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"create database d", "use d", "create table t (id int primary key auto_increment, a int, unique key (a))",
		"create procedure p() begin replace into t (a) values (1); replace into t (a) values (2); replace into t (a) values (1); end"} {
		c.exec(q)
	}
	c.exec("call p()")
	if rows := c.exec("select last_insert_id(), max(id) from t"); rows[0][0] != uint64(3) || rows[0][1] != int32(3) {
		t.Errorf("last_insert_id() and the greatest id are %v", rows[0])
	}
}

// TestUnknownModes: setting an sql_mode that is not supported is an error.
func TestUnknownModes(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"set sql_mode = 'NO_BACKSLASH_ESCAPES'", "set session sql_mode = 'ANSI_QUOTES,no_backslash_escapes'", "set global sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')"} {
		c.wantCode(q, myerr.WrongValue.Number, "42000")
	}
	c.exec("create database d")
	c.exec("use d")
	c.exec("create event e on schedule every 1 day do select 1")
	if got := c.warnings(); len(got) != 1 {
		t.Errorf("CREATE EVENT warns %q", got)
	}
}
