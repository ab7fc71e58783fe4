package sql

import (
	"strings"
	"testing"
)

// TestMixedCollations: joins of columns of different collations lost rows. The results are MariaDB's.
func TestMixedCollations(t *testing.T) {
	const tables = "create table b (id int primary key, s varchar(20) collate utf8mb4_bin, key (s)); create table g (id int primary key, s varchar(20) collate utf8mb4_general_ci, key (s));" +
		"create table u (id int primary key, s varchar(20) collate utf8mb4_unicode_ci, key (s)); create table l (id int primary key, s varchar(20) charset latin1, key (s));" +
		"create table v (id int primary key, s varbinary(20), key (s));" +
		"insert into b values (1,'a'),(2,'A'),(3,'b'); insert into g select * from b; insert into u select * from b; insert into l select * from b; insert into v select * from b;"
	const each = "1 | 1\n2 | 2\n3 | 3\n"
	const folded = "1 | 1\n1 | 2\n2 | 1\n2 | 2\n3 | 3\n"
	for _, s := range []shows{
		{tables, "select b.id, g.id from b join g on b.s = g.s order by 1, 2", each},
		{tables, "select b.id, g.id from g join b on g.s = b.s order by 1, 2", each},
		{tables, "select b.id, g.id from g left join b on g.s <=> b.s order by 1, 2", each},
		{tables, "select v.id, g.id from g join v using (s) order by 1, 2", each},
		{tables, "select b.id, u.id from u, b where u.s = b.s order by 1, 2", each},
		{tables, "select g.id, l.id from g join l on g.s = l.s order by 1, 2", folded},
		{tables, "select b.id, g.id from b join g on b.s = g.s collate utf8mb4_general_ci order by 1, 2", folded},
		{tables, "select g.id, u.id from g join u on g.s = u.s collate utf8mb4_unicode_ci order by 1, 2", folded},
		{tables, "select count(*) from b join g on b.s < g.s", "3\n"},
		{tables, "select g.id from g join u on g.s = u.s", "error 1267"},
		{tables, "select g.id from g left join u using (s)", "error 1267"},
		{tables, "select id from g where exists (select 1 from u where u.s > g.s)", "error 1267"},
		{tables, "update g join u on g.s = u.s set g.id = g.id", "error 1267"},
		{tables, "delete g from g join u on g.s = u.s", "error 1267"},
		{tables, "select 1 from g where s collate utf8mb4_bin = 'A' collate utf8mb4_general_ci", "error 1267"},
		// The column of a subquery may be a literal, whose collation is weaker.
		{tables, "select u.id from u join (select 'A' s) d on u.s = d.s order by 1", "1\n2\n"},
		{tables, "with d as (select 'A' s union select 'x') select u.id from u join d on u.s = d.s order by 1", "1\n2\n"},
		{tables, "select u.id from u join (select null s union select s from u where id = 1) d on u.s = d.s order by 1", "1\n2\n"},
		{tables, "select u.id from (select distinct case when id > 0 then s else '' end s from u) d join u on u.s = d.s order by 1", "1\n2\n3\n"},
		{tables + "create view w as select 'A' s", "select u.id from u join w on u.s = w.s order by 1", "1\n2\n"},
		{tables, "select u.id from u join json_table('[\"A\"]', '$[*]' columns (s varchar(9) path '$')) d on u.s = d.s order by 1", "1\n2\n"},
		{tables + "create table i (s varchar(9) charset ascii); insert into i values ('a')", "select l.id from l join i on l.s = i.s order by 1", "1\n2\n"},
		{tables + "create table i (s varchar(9) charset utf8mb3); insert into i values ('a')", "select u.id from u join i on u.s = i.s order by 1", "1\n2\n"},
		{tables + "set @x = 'A'", "select b.id, g.id from b, g where b.s = @x and g.s = @x order by 1, 2", "2 | 1\n2 | 2\n"},
		{tables, "select id from u where s = 'A' order by id", "1\n2\n"},
	} {
		s.testTwice(t)
	}
	t.Run("index", func(t *testing.T) {
		c := shows{setup: tables + "set @x = 'A'"}.client(t)
		for _, q := range []string{"explain select id from b where s = 'A'", "explain select id from b where s = @x"} {
			if got := c.shown(q); got != c.shown("explain select id from b where s = concat('A', '')") || !strings.Contains(got, " | s | ") {
				t.Errorf("%s: %s", q, got)
			}
		}
	})
}
