package sql

import (
	"fmt"
	"testing"
)

// TestCollationThroughFunctions: results of functions were sorted, grouped and joined by their
// bytes.
func TestCollationThroughFunctions(t *testing.T) {
	const setup = "create table t (id int primary key, s varchar(9), b varchar(9) collate utf8mb4_bin, x varbinary(9)); insert into t values (1,'a','a','a'),(2,'B','B','B'),(3,'A','A','A'),(4,'b','b','b')"
	for _, f := range []string{"concat(%s, '')", "concat_ws('', %s, '')", "coalesce(%s, '')", "elt(1, %s)", "greatest(%s, '')", "least(%s, 'zz')", "left(%s, 1)", "right(%s, 1)",
		"lpad(%s, 2, ' ')", "rpad(%s, 2, '!')", "insert(%s, 2, 0, '!')", "repeat(%s, 2)", "replace(%s, 'x', '')", "substring_index(%s, ',', 1)", "trim(%s)", "reverse(concat(%s, ''))",
		"if(id > 0, %s, '')", "ifnull(concat(%s, ''), '')", "quote(%s)"} {
		of := func(column string) string { return fmt.Sprintf(f, column) }
		for _, s := range []shows{
			{setup, "select id from t order by " + of("s") + ", id", "1\n3\n2\n4\n"},
			{setup, "select count(*) from t group by " + of("s"), "2\n2\n"},
			{setup, "select count(distinct " + of("s") + ") from t", "2\n"},
			{setup, "select count(*) from (select distinct " + of("s") + " from t) q", "2\n"},
			{setup, "select count(*) from (select id, " + of("s") + " c from t) p join (select id, " + of("s") + " c from t) q on p.c = q.c", "8\n"},
			{setup, "select count(*) from (select " + of("s") + " c from t) q group by c", "2\n2\n"},
			{setup, "select count(*) from (select " + of("s") + " from t union select " + of("s") + " from t) q", "2\n"},
			{setup, "select id from t order by " + of("b"), "3\n2\n1\n4\n"},
		} {
			s.test(t)
		}
	}
	for _, s := range []shows{
		{setup, "select id from t order by cast(s as char), id", "1\n3\n2\n4\n"},
		{setup, "select cast(s as char), count(*) from t group by cast(s as char)", "a | 2\nB | 2\n"},
		{setup, "select count(*) from t group by case when id > 0 then s else '' end", "2\n2\n"},
		{setup, "select id from t order by upper(concat(s, '')), id", "1\n3\n2\n4\n"},
		{setup, "select greatest(cast(s as char), cast('' as char)) g from t group by g", "a\nB\n"},
		{setup, "select distinct convert(s, char) from t", "a\nB\n"},
		{setup, "select min(concat(s, '')), max(concat(s, '')) from t", "a | B\n"},
		{setup, "select concat(s, '') c from t union select 'a' order by 1", "a\nB\n"},
		{setup, "select id from t order by concat(x, '')", "3\n2\n1\n4\n"},
		{setup, "select id from t order by concat(s, '') collate utf8mb4_bin", "3\n2\n1\n4\n"},
		{setup, "select count(*) from t group by concat(id, id)", "1\n1\n1\n1\n"},
		{setup, "select x.id, y.id from t x join t y on concat(x.s, '') = concat(y.s, '') where x.id < 3 order by 1, 2", "1 | 1\n1 | 3\n2 | 2\n2 | 4\n"},
		{setup, "select count(distinct concat(case when id > 0 then b else 'x' end, '')), count(distinct concat((select b limit 1), '')) from t", "4 | 4\n"},
		{setup, "select count(distinct if(id > 9, cast(id as char), b)), count(distinct if(id > 9, 'x', b)), count(distinct ifnull(nullif('x', concat('x', '')), b)) from t", "4 | 4 | 4\n"},
		{setup, "select count(distinct concat(s, binary 'x')) from t", "4\n"},
		{setup, "select first_value(id) over (partition by concat(s, '') order by id) v from t order by id", "1\n2\n1\n2\n"},
	} {
		s.testTwice(t)
	}
}
