package sql

import "testing"

// TestConstantsBesideAggregates: go-mysql-server took functions without operands, and
// variables, for columns that are not grouped by.
func TestConstantsBesideAggregates(t *testing.T) {
	const setup = "create table t (id int primary key, g int); insert into t values (1,1),(2,1),(3,2); set @v = 7"
	for _, s := range []shows{
		{setup, "select coalesce(json_arrayagg(g), json_array()) from t where id = 1", "[1]\n"},
		{setup, "select coalesce(json_arrayagg(g), json_array()) from t where id = 9", "[]\n"},
		{setup, "select coalesce(max(g), json_object()), count(*) from t", "2 | 3\n"},
		{setup, "select now() > '2000-01-01', rand() < 1, count(*) from t", "1 | 1 | 3\n"},
		{setup, "select @v, @v + count(*), @@autocommit from t", "7 | 10 | 1\n"},
		{setup, "select g, json_array() j, @v, max(id) from t group by g order by g", "1 | [] | 7 | 2\n2 | [] | 7 | 3\n"},
		{setup, "select g, count(*) from t group by g order by g + @v, pi()", "1 | 2\n2 | 1\n"},
		{setup, "select x.g, x.n from (select g, count(*) + floor(pi()) n from t group by g) x order by 1", "1 | 5\n2 | 4\n"},
		{setup, "select g, now(), count(*) from t", "error 1140"},
	} {
		s.test(t)
	}
}
