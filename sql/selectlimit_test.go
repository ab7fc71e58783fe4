package sql

import "testing"

// TestSelectLimit: with sql_select_limit, a derived table had no rows, and SELECT DISTINCT all. The
// results are MariaDB's.
func TestSelectLimit(t *testing.T) {
	const setup = "create table t (id int primary key, v int); insert into t values (1, 1), (2, 2), (3, 3); create view w as select * from t; set sql_select_limit = 2"
	for _, s := range []shows{
		{setup, "select * from (select * from t) x", "1 | 1\n2 | 2\n"},
		{setup, "select * from (select v, id + 1 from t where id > 1 order by v) x", "2 | 3\n3 | 4\n"},
		{setup, "with c as (select * from t) select * from c", "1 | 1\n2 | 2\n"},
		{setup, "select distinct v from t order by v", "1\n2\n"},
		{setup, "select * from w", "1 | 1\n2 | 2\n"},
		{setup, "select * from w limit 3", "1 | 1\n2 | 2\n3 | 3\n"},
		{setup, "select count(*) from (select distinct v from t) x", "3\n"},
		{setup + "; set sql_select_limit = default", "select distinct v from t order by v", "1\n2\n3\n"},
	} {
		s.testTwice(t)
	}
}
