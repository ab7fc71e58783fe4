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
	const tables = "create table a (id int primary key, x tinyint); create table b (id int primary key, x int, key (x)); create table c (a int, n int, primary key (a, n));" +
		"insert into a values (1,1),(2,1),(3,2),(4,8),(5,9),(6,-1),(7,7); insert into b with recursive r as (select 1 as n union all select n + 1 from r where n < 60) select n, n % 7 from r;" +
		"insert into c select id + 5, x from b"
	for _, s := range []shows{
		{tables, "select a.id, d.id from a left join c on c.a = a.x join (select * from b) d on d.x = a.x and d.id = 8", "1 | 8\n2 | 8\n"},
		{tables, "select a.id, d.id from c right join a on c.a = a.x join (select * from b) d on d.x = a.x and d.id = 8", "1 | 8\n2 | 8\n"},
		{tables, "with w as (select id, x from b) select a.id, d.id from a left join c on c.a = a.x join w d on d.x = a.x and d.id < 8", "1 | 1\n2 | 1\n3 | 2\n"},
	} {
		s.testTwice(t)
	}
}
