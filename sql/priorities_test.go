package sql

import "testing"

// TestPriorities: LOW_PRIORITY and the like were syntax errors, and QUICK a table.
func TestPriorities(t *testing.T) {
	const setup = "create table t (id int primary key, v int); insert into t values (1, 10), (2, 20);"
	for _, s := range []shows{
		{setup + "insert low_priority into t values (3, 3); insert HIGH_PRIORITY ignore into t values (3, 4); insert delayed t values (4, 4); replace low_priority into t values (3, 5); replace delayed into t values (4, 6)", "select * from t where id > 2", "3 | 5\n4 | 6\n"},
		{setup + "update low_priority t set v = 11 where id = 1; update low_priority ignore t set v = 21 where id = 2", "select v from t", "11\n21\n"},
		{setup + "delete low_priority from t where id = 1; delete quick from t where id = 2", "select count(*) from t", "0\n"},
		{setup, "update high_priority t set v = 1", "error 1064"},
		{setup + "delete quick from t quick where quick.id = 1", "select id from t", "2\n"},
		{setup + "create table quick (id int); insert into quick values (1); delete from quick", "select count(*) from quick", "0\n"},
	} {
		s.test(t)
	}
	for _, s := range []shows{
		{setup, "insert low_priority into t values (1, 1)", "error 1062"},
		{setup, "delete quick from nowhere", "error 1146"},
	} {
		s.testTwice(t)
	}
}
