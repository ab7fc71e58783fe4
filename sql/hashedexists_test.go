package sql

import (
	"strings"
	"testing"
)

// TestHashedExists: EXISTS and IN whose right side no index leads to read it once, and find its rows in a hash table. NULL
// is equal to nothing there, and texts are by their collation.
func TestHashedExists(t *testing.T) {
	const tables = "create table a (id int primary key, n bigint, s varchar(9)); create table b (id int primary key, n int, s varchar(9), x int);" +
		"insert into a values (1,1,'p'),(2,2,'Q'),(3,null,'r'),(4,4,null); insert into b values (1,1,'P',1),(2,2,'q',2),(3,null,null,3),(4,2,'q',9);"
	for _, s := range []shows{
		{tables, "select id from a where exists (select 1 from b where b.n = a.n and b.x <> a.id) order by id", "2\n"},
		{tables, "select id from a where not exists (select 1 from b where b.n = a.n and b.x <> a.id) order by id", "1\n3\n4\n"},
		{tables, "select id from a where exists (select 1 from b where b.s = a.s and b.n = a.n) order by id", "1\n2\n"},
		{tables, "select id from a where not exists (select 1 from b where b.s = a.s and b.x > a.id) order by id", "1\n3\n4\n"},
		{tables, "select id from a where n in (select n from b group by n having count(*) > 1)", "2\n"},
	} {
		s.testTwice(t)
	}
	const query = "select id from a where not exists (select 1 from b where b.n = a.n and b.x <> a.id)"
	if got := (shows{setup: tables}).client(t).shown("explain format=tree " + query); !strings.Contains(got, "by hash") {
		t.Errorf("the right side is not hashed:\n%s", got)
	}
}
