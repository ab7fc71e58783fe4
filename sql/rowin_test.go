package sql

import "testing"

// TestRowsInSubqueries: rows were looked up in subqueries as if NULL were a value, and NOT was lost before
// an IN that does not become a join.
func TestRowsInSubqueries(t *testing.T) {
	const setup = "create table n (id int primary key, a int, b int, c int not null, s varchar(9)); insert into n values (1,1,1,1,'a'),(2,2,null,2,'B'),(3,null,3,3,null),(4,4,4,4,'d'),(5,null,null,5,'e');" +
		"create table m (a int, b int, s varchar(9)); insert into m values (1,1,'A'),(2,null,'b'),(null,9,null)"
	for _, s := range []shows{
		{setup, "select id from n where (a, b) in (select a, b from m)", "1\n"},
		{setup, "select id from n where (a, b) not in (select a, b from m) order by id", "4\n"},
		{setup, "select id, (a, b) in (select a, b from m) from n order by id", "1 | 1\n2 | NULL\n3 | NULL\n4 | 0\n5 | NULL\n"},
		{setup, "select id, (a, b) not in (select a, b from m) from n order by id", "1 | 0\n2 | NULL\n3 | NULL\n4 | 1\n5 | NULL\n"},
		{setup, "select id, (a, b) in (select a, b from m where m.a = n.a) from n order by id", "1 | 1\n2 | NULL\n3 | 0\n4 | 0\n5 | 0\n"},
		{setup, "select id, (a, b) in (select a, b from m where m.a > 100) from n order by id", "1 | 0\n2 | 0\n3 | 0\n4 | 0\n5 | 0\n"},
		{setup, "select id from n where (a, b) in (select a, b from m where m.b = n.b)", "1\n"},
		{setup, "select id from n where (c, s) in (select a, s from m) order by id", "1\n2\n"},
		{setup, "select id, (c, s) in (select a, s from m) from n order by id", "1 | 1\n2 | 1\n3 | NULL\n4 | NULL\n5 | NULL\n"},
		{setup, "select id from n where (c, id) not in (select c, id from n x where x.id < 4) order by id", "4\n5\n"},
		{setup, "select id from n where c not in (select 1 union select 2) order by id", "3\n4\n5\n"},
		{setup, "select id from n where (c, id) not in (select 1, 1 union select 2, 2) order by id", "3\n4\n5\n"},
		{setup, "select id from n where c not in (select c from n x where id < 3 union select c from n y where id = 3) order by id", "4\n5\n"},
		{setup, "select id from n where c not in (select c + 0 k from n x where id < 3) order by id", "3\n4\n5\n"},
		{setup, "select id from n where c not in (select max(c) k from n x group by id having k < 3) order by id", "3\n4\n5\n"},
		{setup, "select id from n where a <> (select 1) order by id", "2\n4\n"},
		{setup, "select id from n where a <> (select max(a) from m where b = 1) order by id", "2\n4\n"},
		{setup, "select id from n where a <> (select a from m where b = 1) order by id", "2\n4\n"},
		{setup, "select id from n where c <> (select max(a) from m where b = 100)", ""},
		{setup, "select id from n where (c, a) <> (select a, b from m where b = 1) order by id", "2\n3\n4\n5\n"},
		{setup, "select id from n where (a, b) <> (select a, b from m where a = 2) order by id", "1\n4\n"},
		{setup, "select id from n where (a, b) <=> (select a, b from m where a = 2)", "2\n"},
		{setup, "select id from n where (a, b) = (select 2, null)", ""},
		{setup, "select (1, null) = (select 1, null), (1, 2) = (select 3, null), (1, null) <=> (select 1, null), (1, 2) <> (select 1, null), (1, 2) <> (select 2, null), (1, 2) = (select 1, 2 from m where a > 9)", "NULL | 0 | 1 | NULL | 1 | NULL\n"},
		{setup, "select id from n where (c, s) <=> (select 2, 'b')", "2\n"},
		{setup, "select (1, s) <=> (select 1, 'A') from n where id = 1", "1\n"},
		{setup, "select (1, 2) = (select a, b from m)", "error 1242"},
		{setup, "select (1, null) in (select 1, null), (1, null) in (select 2, null), (1, '2') in (select '1', 2), (1.0, 'A') in (select 1, 'a')", "NULL | 0 | 1 | 1\n"},
		{setup, "select id from n where not (a, b) in (select a, b from m) and (a, c) in (select a, c from n x) order by id", "4\n"},
		{setup, "select n.id from n join n k on (n.a, n.b) in (select a, b from m) and n.id = k.id", "1\n"},
		{setup, "select id from n having (select 1, null from n x where x.id = n.id) is null", "error 1241"},
		{setup + "; delete from n where (a, b) not in (select a, b from m)", "select id from n order by id", "1\n2\n3\n5\n"},
		{setup + "; update n set c = 0 where (a, b) in (select a, b from m)", "select id from n where c = 0", "1\n"},
		{setup, "select id from n order by (a, b) in (select a, b from m) desc, id", "1\n4\n2\n3\n5\n"},
		{setup, "select count(*), (a, b) in (select a, b from m) x from n group by x order by x", "3 | NULL\n1 | 0\n1 | 1\n"},
		{setup, "select id from n where (a, b) in (select a, b, s from m)", "error 1241"},
	} {
		s.test(t)
	}
}

// TestQuantifiers: comparisons with ANY, SOME and ALL were syntax errors.
func TestQuantifiers(t *testing.T) {
	const setup = "create table n (id int primary key, a int); insert into n values (1,1),(2,2),(3,null); create table m (b int); insert into m values (1),(5)"
	for _, s := range []shows{
		{setup, "select id from n where a = any (select b from m)", "1\n"},
		{setup, "select id from n where a =SOME(select b from m)", "1\n"},
		{setup, "select id from n where a <> all (select b from m)", "2\n"},
		{setup, "select id from n where a != ALL (select b from m) or id = 3 order by id", "2\n3\n"},
		{setup, "select id, a = any (select b from m) from n order by id", "1 | 1\n2 | 0\n3 | NULL\n"},
		{setup, "select id from n where (id, a) = any (select b, b from m)", "1\n"},
		{setup + "; delete from n where a = any (with c as (select b from m) select b from c)", "select count(*) from n", "2\n"},
		{setup, "select id from n where a > any (select b from m)", "2\n"},
		{setup, "select id from n where a = all (select b from m)", ""},
		{setup, "select id from n where a <> some (select b from m) order by id", "1\n2\n"},
		{setup, "select id, a > any (select b from m), a <= ALL ( (select b from m where b > n.id) ), a < some (select b from m where b is null), a >= all (select b from m union select null) from n order by id",
			"1 | 0 | 1 | 0 | 0\n2 | 1 | 1 | 0 | 0\n3 | NULL | NULL | 0 | NULL\n"},
		{setup, "select id from n where a < all (select b from m where b > any (select a from n x)) and id < 3 order by id", "1\n2\n"},
		{setup + "; delete from n where a < some (select b from m where b >= all (select b from m))", "select id from n", "3\n"},
		{setup, "select 'B' > any (select 'a'), 'A' <= all (select 'a'), 1.5 > any (select 1), null < all (select 1), 1 > any (select null)", "1 | 1 | 1 | NULL | NULL\n"},
		{setup, "select id from n where a > any (select 'x' from m)", "error 1235"},
		{setup, "select id from n where 'x' <> some (select b from m)", "error 1235"},
		{setup, "select id from n where (id, a) > any (select b, b from m)", "error 1235"},
		{setup, "select id from n where a > any (select b, b from m)", "error 1241"},
		{setup, "select id from n where a <=> any (select b from m)", "error 1235"},
		{setup, "select 'a = any (select 1)', a as `any` from n where id = 1 -- > all (select 1)", "a = any (select 1) | 1\n"},
	} {
		s.test(t)
	}
}
