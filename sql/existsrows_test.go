package sql

import "testing"

// TestExistsCounts: EXISTS became a join by its conditions, whatever the number of rows that its
// subquery has.
func TestExistsCounts(t *testing.T) {
	const setup = "create table a (id int primary key, i int, key (i)); create table b (id int primary key, i int, j int, key (i)); insert into a values (1,1),(2,2),(3,null); insert into b values (1,1,1),(2,5,2)"
	for _, s := range []shows{
		{setup, "select id from a where exists (select 1 from b where b.i = a.i limit 0)", ""},
		{setup, "select id from a where exists (select 1 from b limit 0)", ""},
		{setup, "select id from a where not exists (select 1 from b where b.i = a.i limit 0)", "1\n2\n3\n"},
		{setup, "select id from a where exists (select 1 from b where b.i = a.i limit 1)", "1\n"},
		{setup, "select id from a where exists (select count(*) from b where b.i = a.i)", "1\n2\n3\n"},
		{setup, "select id from a where not exists (select count(*) from b where b.i = a.i)", ""},
		{setup, "select id from a where exists (select max(j) from b where b.i = a.i and j > 100)", "1\n2\n3\n"},
		{setup, "select id from a where exists (select max(j) from b where b.i = a.i group by b.i)", "1\n"},
		{setup, "select id from a where 0 in (select count(*) from b where a.i = 1)", "2\n3\n"},
		{setup, "select id from a where exists (select 1 from (select count(*) n from b) d where d.n = a.id)", "2\n"},
		{setup, "select id from a where exists (select count(*) over () from b where b.i = a.i)", "1\n"},
		{setup, "select id from a where i in (select row_number() over (order by id) from b where b.i = a.i)", "1\n"},
	} {
		s.test(t)
	}
}

// TestExistsOverDerived: EXISTS over a join with a derived table lost its conditions.
func TestExistsOverDerived(t *testing.T) {
	const setup = "create table a (id int primary key, i int, key (i)); create table b (id int primary key, i int, j int, key (i)); create view v as select * from b where j < 2; insert into a values (1,1),(2,2),(3,null); insert into b values (1,1,1),(2,5,2)"
	for _, s := range []shows{
		{setup, "select id from a where exists (select 1 from b join (select * from b where j = 1) d on d.i = b.i where b.i = a.i)", "1\n"},
		{setup, "select id from a where not exists (select 1 from b join (select * from b where j = 1) d on d.i = b.i where b.i = a.i)", "2\n3\n"},
		{setup, "select id from a where exists (select 1 from (select * from b where j = 1) d join b on d.i = b.i where b.i = a.i)", "1\n"},
		{setup, "select id from a where exists (select 1 from b join v on v.i = b.i where b.i = a.i)", "1\n"},
		{setup, "select id from a where exists (select 1 from b join v on v.i = b.i join b c on c.i = b.i where c.i = a.i)", "1\n"},
		{setup, "select id from a where a.i in (select b.i from b join v on v.i = b.i where b.j = a.id)", "1\n"},
	} {
		s.test(t)
	}
}

// TestLimitsInside: conditions about the query around a derived table were looked up below its
// LIMIT.
func TestLimitsInside(t *testing.T) {
	const setup = "create table a (id int primary key, i int); create table b (id int primary key, i int, key (i)); insert into a values (1,1),(2,2),(3,5); insert into b values (1,1),(2,5)"
	for _, s := range []shows{
		{setup, "select id from a where exists (select 1 from (select i from b order by id limit 1) d where d.i = a.i)", "1\n"},
		{setup, "select id from a where not exists (select 1 from (select i from b order by id limit 1) d where d.i = a.i)", "2\n3\n"},
		{setup, "select id, (select count(*) from (select i from b order by id limit 1) d where d.i = a.i) from a", "1 | 1\n2 | 0\n3 | 0\n"},
		{setup, "select id, (select count(*) from (select i from b order by id limit 1 offset 1) d where d.i = a.i) from a", "1 | 0\n2 | 0\n3 | 1\n"},
		{setup, "select id, (select n from (select i, row_number() over (order by id) n from b) d where d.i = a.i) from a", "1 | 1\n2 | NULL\n3 | 2\n"},
	} {
		s.test(t)
	}
}
