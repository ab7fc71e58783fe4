package sql

import "testing"

// TestWideUnions: BIGINT UNSIGNED and signed integers meet in a decimal. The results are MariaDB's.
func TestWideUnions(t *testing.T) {
	const table = "create table u (a bigint unsigned, b bigint, c int, d decimal(10,2), e int unsigned);" +
		"insert into u values (18446744073709551615, -1, -5, 1.5, 4000000000), (9223372036854775808, 9223372036854775807, 3, 2.25, 1)"
	for _, s := range []shows{
		{table, "select a from u union select b from u", "18446744073709551615\n9223372036854775808\n-1\n9223372036854775807\n"},
		{table, "select b from u union select a from u", "-1\n9223372036854775807\n18446744073709551615\n9223372036854775808\n"},
		{table, "select a from u union all select c from u order by 1", "-5\n3\n9223372036854775808\n18446744073709551615\n"},
		{table, "select c from u union all select a from u order by 1 desc limit 2", "18446744073709551615\n9223372036854775808\n"},
		{table, "select a from u union select c from u union select b from u", "18446744073709551615\n9223372036854775808\n-5\n3\n-1\n9223372036854775807\n"},
		{table, "(select a from u union select c from u) union all select b from u", "18446744073709551615\n9223372036854775808\n-5\n3\n-1\n9223372036854775807\n"},
		{table, "select a from u union (select c from u union all select b from u)", "18446744073709551615\n9223372036854775808\n-5\n3\n-1\n9223372036854775807\n"},
		{table, "select b from u union (select c from u union all select a from u)", "-1\n9223372036854775807\n-5\n3\n18446744073709551615\n9223372036854775808\n"},
		{table, "select b from u union all (select a from u union select c from u) order by 1", "-5\n-1\n3\n9223372036854775807\n9223372036854775808\n18446744073709551615\n"},
		{table, "select b from u union select null union select a from u", "-1\n9223372036854775807\nNULL\n18446744073709551615\n9223372036854775808\n"},
		{table, "select a, b from u union select b, a from u order by 1", "-1 | 18446744073709551615\n9223372036854775807 | 9223372036854775808\n9223372036854775808 | 9223372036854775807\n18446744073709551615 | -1\n"},
		{table, "select max(x), min(x) from (select a x from u union all select c from u) y", "18446744073709551615 | -5\n"},
		{table, "select (select x from (select a x from u union select -1) y order by x limit 1)", "-1\n"},
		{table, "select c from u where c in (select a from u union select b + 4 from u where b < 0)", "3\n"},
		{table, "select a from u intersect select b from u", ""},
		{table, "select a from u except select b from u", "18446744073709551615\n9223372036854775808\n"},
		{table, "with w as (select a n from u union all select c from u) select n from w where n > 3 order by n", "9223372036854775808\n18446744073709551615\n"},
		{table + "; create view v as select a from u union all select c from u", "select * from v order by a", "-5\n3\n9223372036854775808\n18446744073709551615\n"},
		{table + "; create table w (n decimal(20,0)); insert into w select a from u union all select c from u", "select n from w order by n", "-5\n3\n9223372036854775808\n18446744073709551615\n"},
		{table, "select 18446744073709551615 union select -1", "18446744073709551615\n-1\n"},
		{table, "select e from u union select c from u union select d from u", "4000000000\n1\n-5\n3\n1.50\n2.25\n"},
		{table, "select a from u union select e from u", "18446744073709551615\n9223372036854775808\n4000000000\n1\n"},
	} {
		s.testTwice(t)
	}
}
