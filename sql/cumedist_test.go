package sql

import "testing"

// The results are MariaDB's.
func TestCumeDist(t *testing.T) {
	const setup = "create table t (a int primary key, b int); insert into t values (1,1),(2,1),(3,2),(4,2),(5,null)"
	for query, want := range map[string]string{
		"select a, cume_dist() over (order by b) from t order by a":                                         "1 | 0.6\n2 | 0.6\n3 | 1\n4 | 1\n5 | 0.2\n",
		"select a, cume_dist() over (partition by b order by a desc) from t order by a":                     "1 | 1\n2 | 0.5\n3 | 1\n4 | 0.5\n5 | 1\n",
		"select a, cume_dist() over () from t where a < 3 order by a":                                       "1 | 1\n2 | 1\n",
		"select a, cume_dist() over w, rank() over w from t window w as (order by b) order by a limit 2":    "1 | 0.6 | 2\n2 | 0.6 | 2\n",
		"select a, round(cume_dist() over (order by b) * 10) c from t order by c, a":                        "5 | 2\n1 | 6\n2 | 6\n3 | 10\n4 | 10\n",
		"select * from (select a, cume_dist() over (order by a rows 1 preceding) c from t) d where c < 0.5": "1 | 0.2\n2 | 0.4\n",
		"select cume_dist() over (order by a) from t where a > 9":                                           "",
		"select cume_dist() from t": "error 1064",
	} {
		shows{setup, query, want}.testTwice(t)
	}
}
