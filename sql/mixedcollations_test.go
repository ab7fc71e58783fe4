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
