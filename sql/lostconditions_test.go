package sql

import "testing"

// TestLostConditions: of joins of four tables, conditions beside equalities that follow from others were lost.
func TestLostConditions(t *testing.T) {
	const tables = "create table a (id int primary key, s varchar(9), key (s)); create table b (id int primary key, n int, s varchar(9), key (s)); create table c (x int, s varchar(9)); create table d (x int, s varchar(9));" +
		"insert into a values (1,'p'),(2,'q'),(3,'p'); insert into b values (1,5,'p'),(2,7,'q'),(3,1,'p'); insert into c values (1,'p'),(2,'q'),(3,'p'),(4,null); insert into d values (1,'p'),(2,'p'),(6,'q'),(7,'q'),(9,'p');"
	const from = "from b join c on c.s = b.s join a on c.s = a.s join d on d.s = b.s "
	for _, s := range []shows{
		{tables, "select count(*) " + from, "26\n"},
		{tables, "select count(*) " + from + "and d.x < b.n", "9\n"},
		{tables, "select count(*) " + from + "where d.x < b.n", "9\n"},
		{tables, "select count(*) " + from + "and d.x = b.n", "5\n"},
		{tables, "select count(*) " + from + "and d.x < b.n left join b e on e.id = d.x and e.n > 5", "9\n"},
		{tables, "select count(*) from b left join (c join a on c.s = a.s) on c.s = b.s join d on d.s = b.s and d.x < b.n", "9\n"},
	} {
		s.testTwice(t)
	}
}

// TestLostConditionsBesideOuterJoins: so were, beside an outer join, conditions of ON about a derived table.
func TestLostConditionsBesideOuterJoins(t *testing.T) {
	const tables = "create table a (id int primary key, x int); create table b (id int primary key, x int);" +
		"insert into a values (1,1),(2,1),(3,2); insert into b values (4,1),(5,1),(6,2)"
	for _, s := range []shows{
		{tables, "select a.id, d.id from a left join b on b.id = a.id join (select * from b) d on d.x = a.x and d.id = 4 order by 1", "1 | 4\n2 | 4\n"},
		{tables, "select a.id, d.id from b right join a on b.id = a.id join (select * from b) d on d.x = a.x and d.id = 4 order by 1", "1 | 4\n2 | 4\n"},
		{tables, "with w as (select id, x from b) select a.id, d.id from a left join b on b.id = a.id join w d on d.x = a.x and d.id > 4 order by 1", "1 | 5\n2 | 5\n3 | 6\n"},
	} {
		s.testTwice(t)
	}
}
