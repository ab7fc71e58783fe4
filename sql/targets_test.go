package sql

import "testing"

// TestTargets: an alias that a DELETE or UPDATE does not have was taken for a table.
func TestTargets(t *testing.T) {
	const setup = "create table t (id int primary key, v int); insert into t values (1, 10), (2, 20);"
	for _, s := range []shows{
		{setup, "delete zz from t tt", "error 1109"},
		{setup, "delete t from t tt", "error 1109"},
		{setup, "delete zz.* from t as tt where tt.id = 1", "error 1109"},
		{setup, "delete from zz using t a join t b", "error 1109"},
		{setup, "update t tt set zz.v = 1", "error 1054"},
		{setup, "update t a, (t b) set t.v = 1", "error 1054"},
	} {
		s.testTwice(t)
	}
	for _, s := range []shows{
		{setup + "delete tt from t tt where id = 1", "select id from t", "2\n"},
		{setup + "delete a from t a join (t b) on a.id = b.id where b.v = 20", "select id from t", "1\n"},
		{setup + "delete from a using t a where a.id = 1", "select id from t", "2\n"},
		{setup + "delete d.t from t where id = 1", "select id from t", "2\n"},
		{setup + "update t a join t b on a.id = b.id - 1 set a.v = b.v", "select v from t", "20\n20\n"},
		{setup + "update d.t set d.t.v = 3, t.id = 7 where id = 1", "select * from t where id = 7", "7 | 3\n"},
		{setup + "update t a, (select 5 n) q set a.v = q.n", "select v from t", "5\n5\n"},
	} {
		s.test(t)
	}
}

// TestSeveralPrimaryKeys: all but the first were left out.
func TestSeveralPrimaryKeys(t *testing.T) {
	for _, s := range []shows{
		{"", "create table t (a int primary key, b int primary key)", "error 1068"},
		{"", "create table t (a int primary key, b int, primary key (b))", "error 1068"},
		{"", "create table t (a int, b int, primary key (a), primary key (b))", "error 1068"},
		{"create table t (a int primary key)", "alter table t add primary key (a)", "error 1068"},
		{"create table t (a int primary key)", "alter table t add column b int primary key", "error 1068"},
		{"create table t (a int primary key unique, b int unique)", "select count(*) from t", "0\n"},
		{"create table t (a int); insert into t values (1), (2); alter table t add column b int auto_increment primary key", "select * from t", "1 | 1\n2 | 2\n"},
		{"create table t (a int primary key); insert into t values (1); alter table t drop primary key, add column b int default 5 primary key", "select * from t", "1 | 5\n"},
	} {
		s.testTwice(t)
	}
}
