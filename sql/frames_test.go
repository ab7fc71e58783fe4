package sql

import "testing"

// framedRows are rows with peers and NULLs in the key k.
const framedRows = `create table t (id int primary key, g int, k int, v int);
	insert into t values (1,1,10,5),(2,1,20,3),(3,1,20,null),(4,1,null,7),(5,2,30,1),(6,2,30,1),(7,2,40,9),(8,2,10,2)`

// TestFrames: sum and avg left out peers of the row, count and max took the whole partition, and
// frames by RANGE knew neither NULL nor DESC nor several keys. All but the last lines are what
// MariaDB answers.
func TestFrames(t *testing.T) {
	for _, s := range []shows{
		{framedRows, "select id, sum(v) over (order by k), avg(v) over (order by k) from t order by id", "1 | 14 | 4.6667\n2 | 17 | 4.2500\n3 | 17 | 4.2500\n4 | 7 | 7.0000\n5 | 19 | 3.1667\n6 | 19 | 3.1667\n7 | 28 | 4.0000\n8 | 14 | 4.6667\n"},
		{framedRows, "select id, count(v) over (partition by g order by k desc) from t order by id", "1 | 2\n2 | 1\n3 | 1\n4 | 3\n5 | 3\n6 | 3\n7 | 1\n8 | 4\n"},
		{framedRows, "select id, min(v) over (order by k), max(v) over (order by k) from t order by id", "1 | 2 | 7\n2 | 2 | 7\n3 | 2 | 7\n4 | 7 | 7\n5 | 1 | 7\n6 | 1 | 7\n7 | 1 | 9\n8 | 2 | 7\n"},
		{framedRows, "select id, last_value(id) over (order by k desc, id) from t order by id", "1 | 1\n2 | 2\n3 | 3\n4 | 4\n5 | 5\n6 | 6\n7 | 7\n8 | 8\n"},
		{framedRows, "select id, count(*) over (order by g, k) from t order by id", "1 | 2\n2 | 4\n3 | 4\n4 | 1\n5 | 7\n6 | 7\n7 | 8\n8 | 5\n"},
		{framedRows, "select id, count(*) over (order by k range between 10 preceding and 10 following) from t order by id", "1 | 4\n2 | 6\n3 | 6\n4 | 1\n5 | 5\n6 | 5\n7 | 3\n8 | 4\n"},
		{framedRows, "select id, sum(v) over (order by k desc range between 10 preceding and current row) from t order by id", "1 | 10\n2 | 5\n3 | 5\n4 | 7\n5 | 11\n6 | 11\n7 | 9\n8 | 10\n"},
		{framedRows, "select id, sum(v) over (order by k desc range between 10 following and 20 following) from t order by id", "1 | NULL\n2 | 7\n3 | 7\n4 | 7\n5 | 10\n6 | 10\n7 | 5\n8 | NULL\n"},
		{framedRows, "select id, count(*) over (order by k range between 10 following and unbounded following) from t order by id", "1 | 5\n2 | 3\n3 | 3\n4 | 8\n5 | 1\n6 | 1\n7 | 0\n8 | 5\n"},
		{framedRows, "select id, count(*) over (range between current row and unbounded following) from t where g = 1 order by id", "1 | 4\n2 | 4\n3 | 4\n4 | 4\n"},
		{framedRows, "select id, n from (select id, count(*) over (order by k) n from t) d where n > 6 order by id", "5 | 7\n6 | 7\n7 | 8\n"},
		{framedRows, "select id from t where id in (select count(*) over (order by k) from t) order by id", "1\n3\n5\n7\n8\n"},
		{framedRows, "select count(*) over (order by k) from t where id > 9", ""},
		{framedRows, "select sum(v) over (order by g, k range between 1 preceding and current row) from t", "error 3587"},
	} {
		s.test(t)
	}
}

// TestFramesAreToldApart: window functions that differ only in the end of their frame were taken for
// one.
func TestFramesAreToldApart(t *testing.T) {
	for _, s := range []shows{
		{framedRows, "select id, sum(v) over (order by id rows unbounded preceding), sum(v) over (order by id rows between unbounded preceding and unbounded following), sum(v) over (order by id rows between unbounded preceding and 1 following) from t where g = 1 order by id", "1 | 5 | 15 | 8\n2 | 8 | 15 | 8\n3 | 8 | 15 | 15\n4 | 15 | 15 | 15\n"},
		{framedRows, "select id, sum(v) over w, sum(v) over x from t where g = 1 window w as (order by id rows unbounded preceding), x as (order by id rows between unbounded preceding and 1 preceding) order by id", "1 | 5 | NULL\n2 | 8 | 5\n3 | 8 | 8\n4 | 15 | 8\n"},
	} {
		s.test(t)
	}
}

// TestNamedWindows: a window that refers to another got the frame of a window without an order.
func TestNamedWindows(t *testing.T) {
	const sums = "1 | 5\n2 | 8\n3 | 8\n4 | 15\n"
	for _, s := range []shows{
		{framedRows, "select id, sum(v) over w from t where g = 1 window w as (partition by g order by id) order by id", sums},
		{framedRows, "select id, sum(v) over (W order by id) from t where g = 1 window w as (partition by g) order by id", sums},
		{framedRows, "select id, sum(v) over x from t where g = 1 window x as (w order by id), w as (partition by g) order by id", sums},
		{framedRows, "select id, sum(v) over (w rows 1 preceding) from t where g = 1 window w as (order by id) order by id", "1 | 5\n2 | 8\n3 | 3\n4 | 7\n"},
		{framedRows, "select id, sum(v) over w from t where g = 1 window w as (order by id rows 1 preceding) order by id", "1 | 5\n2 | 8\n3 | 3\n4 | 7\n"},
		{framedRows, "select id, (select sum(v) over w from t window w as (order by id) limit 1), sum(v) over w from t where g = 1 window w as (order by id desc) order by id", "1 | 5 | 15\n2 | 5 | 10\n3 | 5 | 7\n4 | 5 | 7\n"},
		{framedRows + "; create view x as select id, sum(v) over w s from t window w as (order by id)", "select * from x where id < 3 order by id", "1 | 5\n2 | 8\n"},
		{framedRows + "; create procedure p() select id, sum(v) over w from t where id < 3 window w as (order by id) order by id", "call p()", "1 | 5\n2 | 8\n"},
		{framedRows, "select sum(v) over nosuch from t", "error 3579"},
		{framedRows, "select (select sum(v) over w from t limit 1) from t window w as (order by id)", "error 3579"},
		{framedRows, "explain select sum(v) over nosuch from t", "error 3579"},
		{framedRows, "create procedure p() select sum(v) over nosuch from t", "error 3579"},
		{framedRows, "select id from t where row_number() over (order by id) > 3", "error 3593"},
		{framedRows, "select count(*) from t group by rank() over (order by k)", "error 3593"},
		{framedRows, "select id from t where v - 1 = (select max(r) from (select rank() over (order by id) r from t) d)", "7\n"},
		{framedRows, "select sum(v) over w from t window w as (x), x as (w)", "error 3580"},
		{framedRows, "select sum(v) over w from t window w as (w)", "error 3580"},
		{framedRows, "select sum(v) over (w partition by k) from t window w as (partition by g)", "error 3581"},
		{framedRows, "select sum(v) over (w order by id) from t window w as (rows 1 preceding)", "error 3582"},
		{framedRows, "select sum(v) over (w order by id) from t window w as (order by k)", "error 3583"},
		{framedRows, "select sum(v) over w from t window w as (order by k), W as (order by id)", "error 3591"},
	} {
		s.test(t)
	}
}
