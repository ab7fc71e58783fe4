package sql

import "testing"

// TestCounts: LIMIT and OFFSET of numbers that mean all rows, and of sorted unions.
func TestCounts(t *testing.T) {
	const two = "create table t (id int primary key, a int, s varchar(20)); insert into t values (1,1,'a'),(2,2,'b');"
	for _, s := range []shows{
		{two, "select id from t limit 18446744073709551615 offset 1", "2\n"},
		{two, "select id from t order by a limit 18446744073709551615 offset 1", "2\n"},
		{two, "select id from t order by a limit 9223372036854775807 offset 9223372036854775807", ""},
		{two, "select id from t order by a limit 100000000000", "1\n2\n"},
		{two, "select * from (select id from t order by s desc limit 100000000000 offset 1) x", "1\n"},
		{two, "select id from t limit 1 offset 18446744073709551615", ""},
		{"", "(select 3 as a) union all (select 1) union all (select 2) order by 1 limit 1 offset 1", "2\n"},
		{"", "(select 3 as a) union all (select 1) union all (select 2) order by 1 desc limit 100000000000", "3\n2\n1\n"},
		{"", "(select 3 as a) union (select 1) union (select 2) order by 1 limit 18446744073709551615 offset 2", "3\n"},
	} {
		s.test(t)
	}
}

// TestOrdinalsOfDistinct: ORDER BY a number, of columns that are computed.
func TestOrdinalsOfDistinct(t *testing.T) {
	const two = "create table t (id int primary key, a int, s varchar(20)); insert into t values (1,1,'a'),(2,2,'b');"
	for _, s := range []shows{
		{two, "select distinct a + 1 from t order by 1 desc", "3\n2\n"},
		{two, "select distinct a + 1 as q from t order by 1", "2\n3\n"},
		{two, "select distinct id + a, upper(s) from t order by 2 desc, 1", "4 | B\n2 | A\n"},
		{two, "select distinct count(*) from t group by a order by 1", "1\n"},
		{two, "select distinct case when a = 1 then 'x' else 'a' end from t order by 1", "a\nx\n"},
		{two, "select * from (select distinct year('2020-01-01') + a from t order by 1 limit 1) x", "2021\n"},
		{two, "select distinct a, t.* from t order by 3", "1 | 1 | 1 | a\n2 | 2 | 2 | b\n"},
	} {
		s.test(t)
	}
}

// TestPads: LPAD and RPAD count characters, of binary strings bytes.
func TestPads(t *testing.T) {
	for _, s := range []shows{
		{"", "select rpad('aé', 5, 'ü'), lpad('aé', 5, 'üb'), lpad('aéß', 2, 'x'), rpad('é', 3, '日本')", "aéüüü | übüaé | aé | é日本\n"},
		{"", "select rpad('a', 5, ''), lpad('a', 5, ''), rpad('ab', 1, ''), rpad('é', -1, 'x'), lpad('x', 0, '')", "NULL | NULL | a | NULL | \n"},
		{"", "select hex(lpad(x'C3', 3, x'0102')), hex(rpad(x'C3A9', 1, ''))", "0102C3 | C3\n"},
		{"", "select lpad(5, 3, 0), rpad(1.5, '6', 'x'), lpad('a', null, 'x')", "005 | 1.5xxx | NULL\n"},
	} {
		s.test(t)
	}
}
