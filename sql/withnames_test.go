package sql

import "testing"

// TestTablesNamedLikeQueriesOfWith: a table that is named with its database was read as the query of
// a WITH that has its name. The results are MariaDB's.
func TestTablesNamedLikeQueriesOfWith(t *testing.T) {
	const setup = "create database p; create table p.s (a int); insert into p.s values (1), (2)"
	for query, want := range map[string]string{
		"with s as (select 99 x) select * from p.s order by a":                                                                 "1\n2\n",
		"with S as (select 99 x) select p.s.a from p.s order by a":                                                             "1\n2\n",
		"with s as (select 99 x) select * from s":                                                                              "99\n",
		"with s as (select 99 x) select * from nosuch.s":                                                                       "error 1049",
		"with s as (select 99 x) select s.x, (select count(*) from p.s) from s":                                                "99 | 2\n",
		"with s as (select 99 x) select t.x, d.a from (select * from p.s) d, s t order by 2":                                   "99 | 1\n99 | 2\n",
		"with s as (select 99 x), r as (select * from p.s) select * from r join s order by a":                                  "1 | 99\n2 | 99\n",
		"with s as (select * from p.s) select * from s order by a":                                                             "1\n2\n",
		"with recursive s as (select 1 a union all select a + 1 from s where a < 3) select a, (select sum(a) from p.s) from s": "1 | 3\n2 | 3\n3 | 3\n",
		"with s as (select 99 x) select x from s union all select a from p.s order by 1":                                       "1\n2\n99\n",
		"with s as (select 9 x) select (with s as (select 5 x) select x from s), x, (select min(a) from p.s) from s":           "5 | 9 | 1\n",
		"select (with s as (select 5 x) select x from s) + a from p.s order by 1":                                              "6\n7\n",
		"select a from p.s where a in (with s as (select 1 x) select x from s)":                                                "1\n",
	} {
		shows{setup, query, want}.testTwice(t)
	}
	shows{setup + "; create view p.v as with s as (select 99 x) select a from p.s; insert into p.s with s as (select 99 x) select x from s; " +
		"update p.s set a = 5 where a in (with s as (select 1 x) select x from s)", "select a from p.v order by a", "2\n5\n99\n"}.testTwice(t)
}
