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

// The ORDER BY of a UNION may name columns of its result alone; MariaDB's errors, with MySQL's numbers.
func TestUnionsOrderedByWhatTheyDoNotReturn(t *testing.T) {
	const setup = "create table t (a int, b int); insert into t values (1, 2), (2, 1)"
	for query, want := range map[string]string{
		"select a from t union select a from t order by b":                         "error 1054",
		"select a x from t union select a from t order by a":                       "error 1054",
		"select a from t union select a from t order by a + b":                     "error 1054",
		"select * from (select a from t union select a from t order by b) d":       "error 1054",
		"select a from t union select a from t order by t.a":                       "error 1250",
		"select a from t union select a from t order by sum(a)":                    "error 3028",
		"select 1 except select 2 order by count(*)":                               "error 3028",
		"select a from t union select a from t order by group_concat(a)":           "error 3028",
		"select a from t union select a from t order by row_number() over ()":      "error 3028",
		"select a x from t union select a from t order by -x":                      "2\n1\n",
		"select a, b from t union select b, a from t order by b + 0 desc, a":       "1 | 2\n2 | 1\n",
		"(select a from t order by b limit 1) union (select a from t order by b)":  "2\n1\n",
		"select a from t union select a from t order by (select max(b) from t), a": "1\n2\n",
	} {
		shows{setup, query, want}.testTwice(t)
	}
}
