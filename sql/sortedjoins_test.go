package sql

import "testing"

// TestSortsAboveOuterJoins: rows without a match were returned in the order of their own table, as
// if that were the order asked for.
func TestSortsAboveOuterJoins(t *testing.T) {
	const setup = "create table a (id int primary key, i int); create table b (id int primary key, i int); insert into a values (1,1),(2,2),(3,3); insert into b values (0,0),(1,5),(2,6),(3,7),(5,8)"
	for _, s := range []shows{
		{setup, "select a.id, b.id from b left join a on a.id = b.id order by a.id, b.id", "NULL | 0\nNULL | 5\n1 | 1\n2 | 2\n3 | 3\n"},
		{setup, "select a.id from b left join a on a.id = b.id order by a.id", "NULL\nNULL\n1\n2\n3\n"},
		{setup, "select a.id from b left join a on a.id = b.id order by a.id desc", "3\n2\n1\nNULL\nNULL\n"},
		{setup, "select a.id from a right join b on a.id = b.id order by 1", "NULL\nNULL\n1\n2\n3\n"},
		{setup, "select a.id k from b left join a on a.id = b.id order by k limit 3", "NULL\nNULL\n1\n"},
		{setup, "select b.id, a.id from b left join a on a.id = b.id order by b.id desc", "5 | NULL\n3 | 3\n2 | 2\n1 | 1\n0 | NULL\n"},
		{setup, "select k from (select a.id k from b left join a on a.id = b.id) d order by k", "NULL\nNULL\n1\n2\n3\n"},
	} {
		s.test(t)
	}
}
