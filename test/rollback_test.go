package test

import (
	stdsql "database/sql"
	"fmt"
	"strings"
	"testing"
)

// commits are the statements that commit their transaction, as MySQL's documentation lists them;
// keeps are others. Each is possible once between BEGIN and ROLLBACK. %d is a number of the
// statement's own.
var (
	keeps = []string{
		"select * from t", "select * from w", "select * from w join t using (id) where t.v > 0 order by id limit 1", "select * from (select id from w) x",
		"insert into t select id + 100, v from w", "insert into t values (%d, 1) on duplicate key update v = v + 1", "replace into t values (%d, 2)",
		"update t set v = v + 1", "update t join w using (id) set t.v = 3", "delete from t where id = -1", "delete t from t join w using (id) where w.id = -1",
		"with recursive c (n) as (select 1 union all select n + 1 from c where n < 3) select * from c", "select 1 union select id from w", "table t", "values row(1)",
		"select * from t for update", "select * from w lock in share mode", "set @x = (select max(id) from w)", "set session sort_buffer_size = 300000",
		"show tables", "show create table t", "show create view w", "show columns from w", "show table status", "show index from t", "show warnings", "show variables like 'auto%'",
		"show triggers", "show procedure status", "show processlist", "show grants", "show databases", "show status",
		"explain format=tree select * from w", "describe w", "use r", "select * from information_schema.views", "select * from information_schema.tables where table_schema = 'r'",
		"call p()", "call look()", "savepoint a", "rollback to savepoint s", "release savepoint s",
		"create temporary table tmp%d (id int)", "drop temporary table if exists tmp", "prepare s%d from 'select * from w'",
		"execute prepared", "deallocate prepare prepared2", "kill query 0", "analyze table missing", "insert into t values (1, 1)", "select * from missing",
		"set autocommit = 1",
	}
	commits = []string{
		"create table c%d (id int primary key)", "create table like%d like t", "create table as%d select * from w", "drop table if exists missing", "drop table gone",
		"alter table t add column c%d int", "alter table t alter column v set default 3", "alter table t rename index by_v to by_v2", "rename table other to another",
		"truncate table emptied", "create index by_%d on t (v)", "drop index by_id on t", "create view v%d as select * from w", "create or replace view w2 as select 1", "drop view w2",
		"create database d%d", "drop database d", "alter database r default character set utf8mb4",
		"create procedure p%d() select 1", "drop procedure p2", "create trigger tr%d before insert on other2 for each row set new.id = new.id", "drop trigger tr",
		"create user u%d", "alter user u identified by 'x'", "grant select on r.t to u", "revoke select on r.t from u", "drop user u", "begin", "start transaction", "commit",
		"create role ro%d", "flush privileges", "analyze table t",
	}
)

// A statement between BEGIN and ROLLBACK does not change the transaction's fate, unless it is one
// that commits.
func TestRollback(t *testing.T) {
	s := start(t, t.TempDir())
	db := s.open(t, "r")
	exec1(t, db,
		"create table t (id int primary key, v int, key by_v (v), key by_id (id))", "insert into t values (1, 1), (2, 2)",
		"create table marks (n int primary key)", "create table gone (id int)", "create table other (id int primary key)", "create table other2 (id int primary key)",
		"create table emptied (id int)", "create view w as select * from t", "create view w2 as select * from t",
		"create database d", "create procedure p() update t set v = 7 where id = 2", "create procedure look() select * from w", "create procedure p2() select 1",
		"create trigger tr before insert on other2 for each row set new.id = new.id", "create user u", "grant select on r.t to u",
	)
	n := 0
	for _, list := range []struct {
		statements []string
		kept       int
	}{{keeps, 0}, {commits, 1}} {
		for _, text := range list.statements {
			n++
			if err := rolledBack(t, db, n, text, list.kept); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// rolledBack runs a statement in a transaction that has inserted a mark, and rolls the transaction
// back. It returns an error unless kept marks are left.
func rolledBack(t *testing.T, db *stdsql.DB, n int, text string, kept int) error {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	for _, prepare := range []string{"prepare prepared from 'select * from w'", "prepare prepared2 from 'select 1'", "begin", fmt.Sprint("insert into marks values (", n, ")"), "savepoint s"} {
		if _, err := c.ExecContext(t.Context(), prepare); err != nil {
			return fmt.Errorf("%s: %w", prepare, err)
		}
	}
	rows, err := c.QueryContext(t.Context(), strings.ReplaceAll(text, "%d", fmt.Sprint(n)))
	if err != nil {
		t.Logf("%s: %v", text, err) // a failed statement ends no transaction either
	} else if err := rows.Close(); err != nil {
		return err
	}
	if _, err := c.ExecContext(t.Context(), "rollback"); err != nil {
		return err
	}
	var got int
	if err := db.QueryRow("select count(*) from marks where n = ?", n).Scan(&got); err != nil {
		return err
	}
	if got != kept {
		return fmt.Errorf("%d rows are left of the transaction, want %d", got, kept)
	}
	return nil
}
