package sql

import "testing"

// TestUpsertDefault: DEFAULT as a value of ON DUPLICATE KEY UPDATE was an internal error.
func TestUpsertDefault(t *testing.T) {
	const setup = "create table t (a int primary key, b int default 7, c int, d int not null, e varchar(9) default 'x', f int default (a + 1)); insert into t values (1, 1, 1, 1, 'y', 1);"
	for _, s := range []shows{
		{setup + "insert into t (a, d) values (1, 2) on duplicate key update b = default, c = default, e = default(e)", "select * from t", "1 | 7 | NULL | 1 | x | 1\n"},
		{setup + "insert into t (a, d) values (1, 2) on duplicate key update d = 5, b = default", "select b, d from t", "7 | 5\n"},
		{setup + "insert ignore into t (a, d) values (1, 2) on duplicate key update b = default", "select b from t", "7\n"},
		{setup + "insert into t (a, d) values (1, 2) on duplicate key update f = default", "select f from t", "2\n"},
		{setup + "prepare s from 'insert into t (a, d) values (?, 2) on duplicate key update b = default'; set @a = 1; execute s using @a", "select b from t", "7\n"},
	} {
		s.test(t)
	}
	for _, s := range []shows{
		{setup, "insert into t (a, d) values (1, 2) on duplicate key update d = default", "error 1364"},
		{setup, "insert into t (a, d) values (1, 2) on duplicate key update b = default(c)", "error 1235"},
	} {
		s.testTwice(t)
	}
}
