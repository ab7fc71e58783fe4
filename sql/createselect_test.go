package sql

import "testing"

// TestCreateSelectColumns: the SELECT of a CREATE TABLE gives the columns of its own names, and the others get what an
// INSERT without them gives. Most of the rows were compared with MariaDB's.
func TestCreateSelectColumns(t *testing.T) {
	const of = "create table t (a int, b varchar(3)); insert into t values (1, 'x'); create table c "
	for _, s := range []shows{
		{of + "(v int not null default 7) select 'x' as y", "select v, y from c", "7 | x\n"},
		{of + "(v int not null default 7) select 'x' as y from t where a = 2", "select v, y from c", ""},
		{of + "(a int, c int default 5) select * from t", "select c, a, b from c", "5 | 1 | x\n"},
		{of + "(z int, b varchar(10)) select b, a from t", "select z, b, a from c", "NULL | x | 1\n"},
		{of + "(id int auto_increment primary key) select a, b from t", "select id, a, b, last_insert_id() from c", "1 | 1 | x | 1\n"},
		{of + "(id int auto_increment primary key) select 3 as id, a from t; insert into c (a) values (9)", "select id, a from c order by id", "3 | 1\n4 | 9\n"},
		{of + "(z timestamp default '2001-01-01 00:00:00' on update now(), d int default (1 + 1)) select a from t", "select z, d, a from c", "2001-01-01 00:00:00 | 2 | 1\n"},
		{of + "(z int, g int as (z + 1), d int default (g * 2)) select a, 4 as Z from t", "select z, g, d, a from c", "4 | 5 | 10 | 1\n"},
		{of + "(A int, primary key (A)) select a, b from t", "insert into c values (1, 'y')", "error 1062"},
		{of + "(a int, b int, check (A > 0)) select a from t", "insert into c (a) values (0)", "error 3819"},
		{of + "(n int) as select 1 as a union select 2", "select n, a from c order by a", "NULL | 1\nNULL | 2\n"},
		{of + "select * from t; prepare p from 'create table q (n int default 3) select a from t where a = ?'; set @a = 1; execute p using @a", "select n, a from q", "3 | 1\n"},
		{of + "select * from t; create procedure p(x int) create table q (n int default 3) select a + x as s from t; call p(4)", "select n, s from q", "3 | 5\n"},
		{"create table t (a int)", "create table c (z int not null) select 1 as a", "error 1364"},
		{"create table t (a int)", "create table c (a int check (a > 3)) select 1 as a", "error 3819"},
		{"create table t (a int)", "create table c (a int not null) select null as a", "error 1048"},
		{"create table t (a int)", "create table c (a int primary key) select 1 as a from (select 1 union select 2) as two", "error 1062"},
	} {
		s.test(t)
		if s.setup == "create table t (a int)" { // which fails
			s.setup = "create table if not exists c select 8 as a"
			s.query = "select a from c"
			s.want = "8\n"
			s.test(t)
		}
	}
}
