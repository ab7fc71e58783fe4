package sql

import "testing"

// TestNestedAggregates: an aggregate in a subquery was taken for that of the query around if both
// had the same text.
func TestNestedAggregates(t *testing.T) {
	const setup = "create table a (g int, v int, k int); insert into a values (1,10,1),(1,20,0),(2,100,1),(3,5000,0); create table b (g int primary key, v int); insert into b values (1,1),(2,2),(4,3)"
	for _, s := range []shows{
		{setup, "select g, sum(v) s from a group by g having sum(v) < (select sum(v) * 2 from a where k = 1) order by g", "1 | 30\n2 | 100\n"},
		{setup, "select g, sum(v) s from a group by g having s > (select sum(v) * 0.1 from a)", "3 | 5000\n"},
		{setup, "select g, max(v) from a group by g having max(v) < (select max(v) from a where k = 1)", "1 | 20\n"},
		{setup, "select g, count(v) from a group by g having count(v) * 2 = (select count(v) from a)", "1 | 2\n"},
		{setup, "select g, count(distinct v) from a group by g having count(distinct v) < (select count(distinct v) from a) order by g", "1 | 2\n2 | 1\n3 | 1\n"},
		{setup, "select g, count(*) from a group by g having count(*) * 2 = (select count(*) from a)", "1 | 2\n"},
		{setup, "select sum(v), (select sum(v) from a), (select sum(v) from a where k = 1) from a where g < 3", "130 | 5130 | 110\n"},
		{setup, "select g, sum(v), (select sum(v) from a) from a group by g order by g", "1 | 30 | 5130\n2 | 100 | 5130\n3 | 5000 | 5130\n"},
		{setup, "select g, sum(v) / (select sum(v) from a) * 100 from a group by g order by sum(v) / (select sum(v) from a) desc", "3 | 97.4659\n2 | 1.9493\n1 | 0.5848\n"},
		{setup, "select g from a group by g order by max(v) < (select max(v) from a), g", "3\n1\n2\n"},
		{setup, "select g from a group by g having sum(v) = (select sum(v) from a where g in (select g from a group by g having sum(v) > (select sum(v) / 2 from a)))", "3\n"},
		{setup, "select g, sum(v), (select v from b where b.g = a.g) from a group by g order by g", "1 | 30 | 1\n2 | 100 | 2\n3 | 5000 | NULL\n"},
		{setup, "select g, sum(v), (select sum(v) from b where b.g <= a.g) from a group by g order by g", "1 | 30 | 1\n2 | 100 | 3\n3 | 5000 | 3\n"},
		{setup, "select g, count(*), exists (select 1 from b where b.g = a.g), a.g in (select g from b) from a group by g order by g", "1 | 2 | 1 | 1\n2 | 1 | 1 | 1\n3 | 1 | 0 | 0\n"},
		{setup, "select g, sum(v), (select max(v) from b where b.g = a.k) from a group by g", "error 1055"},
		{setup, "select g, count(*), exists (select 1 from b where b.g = (select a.k)) from a group by g", "error 1055"},
		{setup, "select sum(1) from a where g < 3 having sum(1) < (select sum(1) from a)", "3\n"},
		{setup, "select sum(a.v) from a having sum(a.v) > (select sum(A.v) from A where k = 1)", "5130\n"},
		{setup, "select g, sum(v) from a group by g having exists (select 1 from b where b.g = a.g and b.v < sum(a.v)) order by g", "1 | 30\n2 | 100\n"},
		{setup, "select g, max(k) from a group by g having max(k) >= (select max(b.g) - 3 from b where b.v > max(k)) order by g", "1 | 1\n2 | 1\n"},
		{setup, "select sum(v), (select sum(a.v)) from a", "5130 | 5130\n"},
		{setup + "; create view w as select g, sum(v) s from a group by g having sum(v) > (select sum(v) / 2 from a)", "select * from w", "3 | 5000\n"},
	} {
		s.testTwice(t)
	}
	for _, s := range []shows{
		{setup + "; create procedure p() select g from a group by g having sum(v) > (select sum(v) / 2 from a)", "call p()", "3\n"},
		{setup + "; prepare s from 'select g from a group by g having sum(v) > (select sum(v) / ? from a)'; set @two = 2", "execute s using @two", "3\n"},
		{setup + "; insert into b select g + 10, sum(v) from a group by g having sum(v) > (select sum(v) / 2 from a)", "select * from b where g > 10", "13 | 5000\n"},
	} {
		s.test(t)
	}
}
