package sql

import "testing"

// TestUnionsOrderedByConstants: the rows of a UNION whose first SELECT has constants without aliases
// were not sorted by them. The results are MariaDB's.
func TestUnionsOrderedByConstants(t *testing.T) {
	for _, s := range []shows{
		{"", "select 1 union all select 2 order by 1 desc", "2\n1\n"},
		{"", "select 1, 5 union select 2, 7 order by 2 desc", "2 | 7\n1 | 5\n"},
		{"", "select upper('a') union all select 'b' order by 1 desc", "b\nA\n"},
		{"", "select -1 union all select 5 union all select 3 order by 1 desc limit 2", "5\n3\n"},
		{"", "(select 'a') union all (select 'b') order by 1 desc", "b\na\n"},
		{"", "select 1 union all select 2 order by `1` desc", "2\n1\n"},
		{"", "select * from (select 1 union all select 2 order by 1 desc limit 1) d", "2\n"},
		{"create table t (id int primary key, b bigint); insert into t values (1, 9), (2, 8)", "select b, 3 from t union all select 7, 9 order by 2 desc, 1", "7 | 9\n8 | 3\n9 | 3\n"},
	} {
		s.testTwice(t)
	}
}
