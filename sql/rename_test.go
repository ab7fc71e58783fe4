package sql

import "testing"

// TestRenamedTables: the databases that RENAME and ALTER TABLE ... RENAME name were forgotten, and
// triggers stayed with the name that the table had had. The results are MariaDB's.
func TestRenamedTables(t *testing.T) {
	const setup = "create table t (id int primary key, v int); insert into t values (1, 1); create table log (what varchar(30)); create database e; create table e.w (id int); insert into e.w values (7); create view vt as select id from t; " +
		"create table p (id int primary key); create table c (p int, foreign key (p) references p (id)); insert into p values (2)"
	const logged = setup + "; create trigger `on` before update on t for each row insert into log values ('first'); create trigger a before update on t for each row insert into log values ('second')"
	const log = "select what from log"
	for _, s := range []shows{
		{setup + "; rename table t to e.t2", "select * from e.t2", "1 | 1\n"},
		{setup + "; alter table t rename to e.t2", "select * from e.t2", "1 | 1\n"},
		{setup + "; rename table e.w to w2", "select * from w2", "7\n"},
		{setup + "; use e; rename table d.t to d.t2, w to d.w2", "select t2.id, w2.id from d.t2, d.w2", "1 | 7\n"},
		{setup + "; rename table t to q, q to r", "select * from r", "1 | 1\n"},
		{setup + "; rename table vt to vu", "select * from vu", "1\n"},
		{setup + "; create procedure r() rename table d.t to e.t2; call r()", "select * from e.t2", "1 | 1\n"},
		{setup, "rename table vt to e.vt", "error 1450"},
		{setup, "rename table t to e.w", "error 1050"},
		{setup, "rename table t to log", "error 1050"},
		{setup, "rename table nosuch to e.x", "error 1146"},
		{setup, "rename table nosuch to x", "error 1146"},
		{setup, "rename table nosuch.t to x", "error 1049"},
		{setup, "rename table t to nosuch.t", "error 1049"},
		{setup, "rename table information_schema.tables to e.x", "error 1049"},
		{setup, "rename table c to e.c", "error 1235"},
		{setup, "rename table p to e.p", "error 1235"},
		{logged, "rename table t to e.t2", "error 1435"},
		{logged, "alter table t rename e.t2", "error 1435"},
		{logged + "; rename table t to t2; update t2 set v = 2", log, "first\nsecond\n"},
		{logged + "; alter table t rename to `t``2`; update `t``2` set v = 2; rename table d.`t``2` to t; update t set v = 3", log, "first\nsecond\nfirst\nsecond\n"},
		{logged + "; rename table t to t3, p to t, t3 to p; update t set id = 3", log, ""},
		{logged + "; rename table t to t3, p to t, t3 to p; update p set v = 3", log, "first\nsecond\n"},
		{logged + "; drop trigger `on`; drop trigger a; rename table t to e.t2", "select * from e.t2", "1 | 1\n"},
		{logged + "; drop table t; create table t (id int, v int); insert into t values (1, 1); update t set v = 2", log, ""},
		{logged + "; drop database d; create database d; use d; create table log (what varchar(30)); create table t (v int); insert into t values (1); update t set v = 2", log, ""},
	} {
		s.testTwice(t)
	}
}

// A RENAME whose tables are all named with their databases needs no current one, and leaves none.
func TestRenameWithoutDatabase(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{
		"CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "RENAME TABLE d.t TO d.u, d.u TO d.v", "ALTER TABLE d.v RENAME TO d.w",
		"ALTER TABLE d.w RENAME d.x, ADD COLUMN b INT", "SELECT a, b FROM d.x",
	} {
		c.exec(q)
	}
	for _, q := range []string{"RENAME TABLE d.x TO y", "RENAME TABLE x TO d.y", "ALTER TABLE d.x RENAME y", "SELECT * FROM x"} {
		c.wantCode(q, 1046, "3D000")
	}
	c.wantCode("RENAME TABLE d.nosuch TO d.y", 1146, "42S02")
	c.wantCode("RENAME TABLE nosuch.x TO d.y", 1049, "42000")
	if got := c.exec("SELECT DATABASE()")[0][0]; got != nil {
		t.Errorf("the current database is %v", got)
	}
}
