package sql

import "testing"

// TestElements: ENUM and SET were compared with text by their places. The results are MariaDB's.
func TestElements(t *testing.T) {
	const setup = "create table e (id int primary key, e enum('z','m','a','10','2'), s set('z','m','a'), key (e), key (s)); " +
		"insert into e values (1, 'z', 'z'), (2, 'm', 'm,a'), (3, 'a', 'a'), (4, '10', 'z,m'), (5, '2', ''), (6, null, null), (7, 'a', 'z,a')"
	for _, s := range []shows{
		{setup, "select id from e where e < 'm' order by id", "3\n4\n5\n7\n"},
		{setup, "select id from e where 'm' < e order by id", "1\n"},
		{setup, "select id from e where e between 'a' and 'n' order by id", "2\n3\n7\n"},
		{setup, "select id from e where e not between '10' and 'a' order by id", "1\n2\n"},
		{setup, "select id from e where e = 'nope' or e = '3' or e in ('3', 'x')", ""},
		{setup, "select id from e where e <> 'q' and e not in ('m', 'q') order by id", "1\n3\n4\n5\n7\n"},
		{setup, "select id from e where e = 'M' or e = '2' order by id", "2\n5\n"},
		{setup, "select id from e where e = 2 or e > 4 or e = 1.5 or e = 100 order by id", "2\n5\n"},
		{setup, "select id from e where e > 1.5 and e < 100 order by id", "2\n3\n4\n5\n7\n"},
		{setup, "select id from e where e in (1, 3, 70) order by id", "1\n3\n7\n"},
		{setup, "select id from e where e in (select 'm' union select 'q')", "2\n"},
		{setup, "select id from e where e = id or s = id order by id", "1\n2\n3\n4\n5\n"},
		{setup, "select id from e where s = 'a,m'", ""},
		{setup, "select id from e where s = 'M,A' or s = 5 order by id", "2\n7\n"},
		{setup, "select id from e where s > 'a' order by id", "1\n2\n4\n7\n"},
		{setup, "select id from e where s between 'a' and 'z' order by id", "1\n2\n3\n"},
		{setup, "select id from e where s = '' or s > 5 order by id", "2\n5\n"},
		{setup, "select x.id, y.id from e x join e y on x.e < y.e where x.id > 4 order by 1, 2", "5 | 1\n5 | 2\n5 | 3\n5 | 7\n7 | 1\n7 | 2\n"},
		{setup, "select x.id, y.id from e x join e y on x.e = y.s order by 1, 2", "1 | 1\n3 | 3\n7 | 3\n"},
		{setup, "select x.id, y.id from e x join e y on x.e = y.e where x.id > 2 order by 1, 2", "3 | 3\n3 | 7\n4 | 4\n5 | 5\n7 | 3\n7 | 7\n"},
		{setup, "select e < 'm', e < 2, e > 'm', e <=> 'm', e between 'a' and 'n', s > 'm' from e where id in (1, 2, 3, 6) order by id", "0 | 1 | 1 | 0 | 0 | 1\n0 | 0 | 0 | 1 | 1 | 1\n1 | 0 | 0 | 0 | 1 | 0\nNULL | NULL | NULL | 0 | NULL | NULL\n"},
		{setup, "select case when e > 'm' then 1 else 0 end from e where id < 4 order by id", "1\n0\n0\n"},
		{setup, "select e from e where id < 6 having e < 'm' order by e", "a\n10\n2\n"},
		{setup, "select min(e), max(e), min(s), max(s) from e where id < 9", "10 | z |  | z,m\n"},
		{setup, "select id % 2, min(e), max(s) from e group by id % 2 having min(e) < 'b' order by 1", "0 | 10 | z,m\n1 | 2 | z,a\n"},
		{setup, "select id, min(e) over (order by id) from e order by id", "1 | z\n2 | m\n3 | a\n4 | 10\n5 | 10\n6 | 10\n7 | 10\n"},
	} {
		s.testTwice(t)
	}
}

// TestElementsChange: an UPDATE or DELETE finds rows by an ENUM or SET as a SELECT does.
func TestElementsChange(t *testing.T) {
	const setup = "create table e (id int primary key, e enum('z','m','a'), s set('z','m','a'), key (e)); insert into e values (1, 'z', 'z'), (2, 'm', 'm,a'), (3, 'a', ''); " +
		"update e set s = 'm' where e < 'm'; delete from e where s > 'm' and e > 'm'"
	shows{setup, "select * from e order by id", "2 | m | m,a\n3 | a | m\n"}.testTwice(t)
	shows{"create table a (x enum('a','b'), y enum('b','a'), f varchar(3)); insert into a values ('a', 'a', 'a'), ('b', 'a', 'b'), ('a', 'b', 'c')",
		"select x = y, x < y, x = f, f = y, x <=> y from a", "1 | 0 | 1 | 1 | 1\n0 | 0 | 1 | 0 | 0\n0 | 1 | 0 | 0 | 0\n"}.testTwice(t)
}
