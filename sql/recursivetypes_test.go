package sql

import "testing"

// TestRecursiveTypes: dates and times of WITH RECURSIVE were DATETIME(6).
func TestRecursiveTypes(t *testing.T) {
	const days = "with recursive r as (select date('2020-01-30') d union all select d + interval 1 day from r where d < '2020-02-01') "
	const table = "create table f (id int, b date, a datetime, s timestamp(3) null, father int); insert into f values (1, '2000-01-01', '2000-01-01 10:00:00', '2000-01-01 10:00:00.5', 2), (2, '1970-01-01', '1970-01-01 11:00:00', '1971-01-01 10:00:00', null);"
	for _, s := range []shows{
		{"", days + "select * from r", "2020-01-30\n2020-01-31\n2020-02-01\n"},
		{"", days + "select max(d), min(d) from r", "2020-02-01 | 2020-01-30\n"},
		{"", days + "select d e from r order by e desc limit 1", "2020-02-01\n"},
		{"", days + "select x.d, count(*) from (select d from r) x group by x.d having x.d > '2020-01-30' order by 1", "2020-01-31 | 1\n2020-02-01 | 1\n"},
		{"", days + "select concat(d, ''), d + interval 1 hour from r limit 1", "2020-01-30 | 2020-01-30 01:00:00\n"},
		{"", "select (" + days + "select max(d) from r)", "2020-02-01\n"},
		{"create view v as " + days + "select d from r", "select * from v", "2020-01-30\n2020-01-31\n2020-02-01\n"},
		{"", "with recursive r as (select timestamp('2020-01-01 10:00:00') d union all select d + interval 1 hour from r where d < '2020-01-01 12:00:00') select d from r", "2020-01-01 10:00:00\n2020-01-01 11:00:00\n2020-01-01 12:00:00\n"},
		{table, "with recursive r as (select * from f where id = 1 union all select f.* from f join r on f.id = r.father) select * from r", "1 | 2000-01-01 | 2000-01-01 10:00:00 | 2000-01-01 10:00:00.500 | 2\n2 | 1970-01-01 | 1970-01-01 11:00:00 | 1971-01-01 10:00:00.000 | NULL\n"},
		{table, "with recursive r as (select min(b) d, max(b) m from f union all select d + interval 10 year, m from r where d + interval 10 year <= m) select d, m, (select count(*) from f where f.b = r.d) from r", "1970-01-01 | 2000-01-01 | 1\n1980-01-01 | 2000-01-01 | 0\n1990-01-01 | 2000-01-01 | 0\n2000-01-01 | 2000-01-01 | 1\n"},
		{table, "select id from f where b in (" + days + "select d - interval 20 year from r) or b in (with recursive r as (select date('1999-12-31') d union all select d + interval 1 day from r where d < '2000-01-02') select d from r)", "1\n"},
		{"create table c (d date primary key, t datetime); insert into c " + days + "select d, d from r", "select * from c", "2020-01-30 | 2020-01-30 00:00:00\n2020-01-31 | 2020-01-31 00:00:00\n2020-02-01 | 2020-02-01 00:00:00\n"},
	} {
		s.testTwice(t)
	}
}
