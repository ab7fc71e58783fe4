package sql

import "testing"

// TestWindowsAlike: window functions that go-mysql-server took for one. ORDER BY of one that the SELECT returns was 1052, and NTILEs of different numbers
// were an internal error.
func TestWindowsAlike(t *testing.T) {
	const table = "create table s (id int primary key, k int, v int); insert into s values (1, 1, 10), (2, 1, 20), (3, 2, 1), (4, 2, 3), (5, 3, 100);"
	for _, s := range []shows{
		{table, "select id, rank() over w as `rank` from s window w as (partition by k order by v desc) order by k, rank() over w", "2 | 1\n1 | 2\n4 | 1\n3 | 2\n5 | 1\n"},
		{table, "select rank() over (order by v desc) from s order by rank() over (order by v desc)", "1\n2\n3\n4\n5\n"},
		{table, "select id, rank() over (order by v desc) from s order by rank() over (order by v desc) desc", "3 | 5\n4 | 4\n1 | 3\n2 | 2\n5 | 1\n"},
		{table, "select sum(v) over (partition by k) n from s order by sum(v) over (partition by k) desc, id", "100\n30\n30\n4\n4\n"},
		{table, "select id, ntile(4) over w, ntile(5) over w, ntile(100) over w from s window w as (order by v) order by id", "1 | 2 | 3 | 3\n2 | 3 | 4 | 4\n3 | 1 | 1 | 1\n4 | 1 | 2 | 2\n5 | 4 | 5 | 5\n"},
		{table, "select id, ntile(2) over (order by v), ntile(2) over (order by v desc), ntile(2) over (order by v) from s order by id", "1 | 1 | 1 | 1\n2 | 2 | 1 | 2\n3 | 1 | 2 | 1\n4 | 1 | 2 | 1\n5 | 2 | 1 | 2\n"},
		{table, "select id, rank() over w, rank() over w from s window w as (order by v) order by id limit 2", "1 | 3 | 3\n2 | 4 | 4\n"},
	} {
		s.testTwice(t)
	}
}
