package sql

import "testing"

// TestReferencesAfterDuplicates: a duplicate key is found before a missing reference. The results
// are MariaDB's.
func TestReferencesAfterDuplicates(t *testing.T) {
	const setup = "create table p (id int primary key); create table c (id int primary key, pid int, v int, u int unique, foreign key (pid) references p (id)); " +
		"insert into p values (1), (2); insert into c values (1, 1, 1, 1), (4, 2, 5, 9); "
	const rows = "select * from c order by id"
	for _, s := range []shows{
		{setup + "insert into c values (1, 99, 5, 2) on duplicate key update v = 7", rows, "1 | 1 | 7 | 1\n4 | 2 | 5 | 9\n"},
		{setup + "insert into c values (7, 88, 5, 1) on duplicate key update v = v + 1", rows, "1 | 1 | 2 | 1\n4 | 2 | 5 | 9\n"},
		{setup + "insert into c select 1, 99, 5, 2 on duplicate key update pid = 2", rows, "1 | 2 | 1 | 1\n4 | 2 | 5 | 9\n"},
		{setup + "insert ignore into c values (1, 99, 5, 3), (2, 99, 5, 4), (5, 1, 1, 6)", rows, "1 | 1 | 1 | 1\n4 | 2 | 5 | 9\n5 | 1 | 1 | 6\n"},
		{setup + "update ignore c set pid = 77 where id = 1", rows, "1 | 1 | 1 | 1\n4 | 2 | 5 | 9\n"},
		{"create table s (id int primary key, par int, foreign key (par) references s (id)); insert into s values (1, 1), (2, 1), (3, 2); insert into s values (1, 77) on duplicate key update par = null; update s set id = 9, par = 9 where id = 3; " +
			"insert ignore into s values (20, 19), (19, 20), (21, 21)", "select * from s order by id", "1 | NULL\n2 | 1\n9 | 9\n21 | 21\n"},
	} {
		s.testTwice(t)
	}
	c := newInstance(t).client("")
	for _, q := range []string{"create database d", "use d", "create table p (id int primary key)", "create table c (id int primary key, pid int, foreign key (pid) references p (id))", "insert into p values (1)", "insert into c values (1, 1), (4, 1)"} {
		c.exec(q)
	}
	for range 2 {
		c.wantCode("insert into c values (1, 99)", 1062, "23000")
		c.wantCode("insert into c values (2, 99)", 1452, "23000")
		c.wantCode("insert into c values (1, 1) on duplicate key update pid = 99", 1452, "23000")
		c.wantCode("replace into c values (1, 99)", 1452, "23000")
		c.wantCode("update c set id = 4, pid = 77 where id = 1", 1062, "23000")
		c.wantCode("update c set id = 5, pid = 77 where id = 1", 1452, "23000")
		if got := c.shown("select * from c order by id"); got != "1 | 1\n4 | 1\n" {
			t.Errorf("after changes that failed: %s", got)
		}
	}
}
