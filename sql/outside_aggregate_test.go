package sql

import "testing"

// TestAggregatesOfOutside: an aggregate of columns of the outer query was taken for one of the
// subquery in which it stands, and gave a row for each row.
func TestAggregatesOfOutside(t *testing.T) {
	const setup = "create table a (id int primary key, i int); create table b (id int primary key, i int); insert into a values (1,1),(2,2); insert into b values (1,5),(2,6),(3,7)"
	for _, s := range []shows{
		{setup, "select (select count(a.i)) from a", "error 1235"},
		{setup, "select (select sum(a.i) from b) from a", "error 1235"},
		{setup, "select (select max(a.i + 1) from b where b.id = a.id) from a", "error 1235"},
		{setup, "select (select (select min(a.i) from b limit 1) from b limit 1) from a", "error 1235"},
		{setup, "select (select (select avg(x.i) from b) from b x limit 1) from a", "error 1235"},
		{setup, "select id from a where exists (select 1 from b having sum(a.i) > 1)", "error 1235"},
		{setup, "select id from a where (select count(distinct a.i)) = 1", "error 1235"},
		{setup, "select (select json_arrayagg(a.i) from b), (select group_concat(a.i) from b) from a", "error 1235"},
		{setup, "update a set i = (select max(a.i) from b)", "error 1235"},
		{setup, "delete from a where i = (select max(a.i) from b)", "error 1235"},
		{setup, "select id, (select count(*) from b where b.id >= a.id) from a order by id", "1 | 3\n2 | 2\n"},
		{setup, "select id, (select count(1)), (select sum(b.i * a.i) from b) from a order by id", "1 | 1 | 18\n2 | 1 | 36\n"},
		{setup, "select id, (select sum(d.k) from (select a.i + b.i k from b) d) from a order by id", "1 | 21\n2 | 24\n"},
		{setup, "select id, (with c as (select i from b) select max(c.i) from c where c.i > a.i) from a order by id", "1 | 7\n2 | 7\n"},
		{setup, "select a.id, x.n from a, lateral (select count(b.i) n from b where b.id > a.id) x order by id", "1 | 2\n2 | 1\n"},
		{setup, "select id, (select sum(j.v) from json_table('[1,2]', '$[*]' columns (v int path '$')) j) from a order by id", "1 | 3\n2 | 3\n"},
		{setup, "select id, (select max(v.column_0) from (values row(4), row(5)) v) from a order by id", "1 | 5\n2 | 5\n"},
		{setup, "select id, (select max(z.k) from (select i k from b union select 9) z) from a order by id", "1 | 9\n2 | 9\n"},
		{setup + "; create view w as select id, i from b", "select id, (select max(i) from w), (select max(w.i) from w where w.id >= a.id), (select sum(x.i) from w x) from a order by id", "1 | 7 | 7 | 18\n2 | 7 | 7 | 18\n"},
		{setup + "; create view w as select id, i from b", "select (select max(a.i) from w) from a", "error 1235"},
		{setup, "select i, (select count(*) from b having count(*) > max(b.id)) from a", "1 | NULL\n2 | NULL\n"},
	} {
		s.test(t)
	}
}

// A column of the query around is a constant beside the aggregates of a subquery; the results are MariaDB's.
func TestOutsideColumnsBesideAggregates(t *testing.T) {
	const setup = "create table a (id int primary key, i int); create table b (id int primary key, i int); insert into a values (1,1),(2,2); insert into b values (1,5),(2,6),(3,7)"
	for _, s := range []shows{
		{setup, "select id, (select coalesce(max(b.i), a.i) from b where b.id > a.id + 1) from a order by id", "1 | 7\n2 | 2\n"},
		{setup, "select id, (select count(*) + a.i from b) from a order by id", "1 | 4\n2 | 5\n"},
		{setup, "select id, (select a.i from b having count(*) > 1) from a order by id", "1 | 1\n2 | 2\n"},
		{setup, "select id, (select concat(a.i, max(b.i)) from b) from a order by id", "1 | 17\n2 | 27\n"},
		{setup, "select id, (select sum(d.x) + a.i from (select i x from b) d) from a order by id", "1 | 19\n2 | 20\n"},
		{setup, "select id, (select max(b.i) + (select min(c.id) + a.id from b c) from b) from a order by id", "1 | 9\n2 | 10\n"},
		{setup, "select id from a where i <> (select coalesce(max(i), a.i) from b where b.id = a.id) order by id", "1\n2\n"},
		{setup, "select id, (select b.id + max(b.i) + a.i from b) from a", "error 1140"},
		{setup, "select id, (select max(b.i) from b), count(*) from a", "error 1140"},
	} {
		s.testTwice(t)
	}
}
