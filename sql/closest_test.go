package sql

import "testing"

// TestClosest: if sql_mode is not strict, a value that does not fit becomes the nearest one, and one that is missing the type's default, with
// a warning. The results are MariaDB's, whose warnings name the table of a column, too.
func TestClosest(t *testing.T) {
	const table = "create table t (id int primary key, name varchar(5) not null, n int not null, d date not null, e enum('a', 'b') not null, v varchar(5));"
	const lenient = table + "set sql_mode = '';"
	const numbers = "create table t (a tinyint unsigned not null, b decimal(5,2) not null, c time not null, s set('a', 'b') not null, f float not null, i bit(3) not null, x varbinary(2) not null); set sql_mode = '';"
	for _, s := range []shows{
		{lenient + "insert into t (id) values (1)", "select * from t", "1 |  | 0 | 0000-00-00 | a | NULL\n"},
		{lenient + "insert into t (id, d) values (1, '2020-01-01')", "show warnings", "Warning | 1364 | Field 'name' doesn't have a default value\nWarning | 1364 | Field 'n' doesn't have a default value\n"},
		{lenient + "insert into t values (1, 'a long name', '12x', '2020-13-01', 'c', 'longer'), (2, null, 99999999999, null, null, null)",
			"select * from t", "1 | a lon | 12 | 0000-00-00 |  | longe\n2 |  | 2147483647 | 0000-00-00 |  | NULL\n"},
		{lenient + "insert into t values (1, 'a long name', 'x', '2020-01-01', 'a', ''), (2, null, 0, '2020-01-01', 'a', null)",
			"show warnings", "Warning | 1265 | Data truncated for column 'name' at row 1\nWarning | 1366 | Incorrect integer value: 'x' for column 'n' at row 1\nWarning | 1048 | Column 'name' cannot be null\n"},
		{lenient + "insert into t (id, name, n, d) select 1, null, -99999999999, 'x'", "select * from t", "1 |  | -2147483648 | 0000-00-00 | a | NULL\n"},
		{lenient + "insert into t (id, name, n, d) values (1, 'x', 1, '2020-01-01'); insert into t (id, n) values (1, 5) on duplicate key update name = 'updated too', n = 'x'", "select id, name, n from t", "1 | updat | 0\n"},
		{lenient + "replace into t (id, name) values (1, 'replaced')", "select name from t", "repla\n"},
		{lenient + "insert into t (id) values (1), (2); update t set name = 'a long name', n = '7x', d = 'x', e = 'x', v = 1234567", "select * from t", "1 | a lon | 7 | 0000-00-00 |  | 12345\n2 | a lon | 7 | 0000-00-00 |  | 12345\n"},
		{lenient + "insert into t (id, name, n) values (1, 'x', 1), (2, 'y', 2); update t set name = null, n = null where id = 2", "select id, name, n from t", "1 | x | 1\n2 |  | 0\n"},
		{lenient + "insert into t (id) values (1); update t set name = null where id = 1", "show warnings", "Warning | 1048 | Column 'name' cannot be null\n"},
		{numbers + "insert into t values (300, 12345.678, '900:00:00', 'a,x', '12.5z', 9, 'abc'), (-5, '-12345.678', '-900:00:00', 'x', 'z', 1, 'a'), (1.5, '', '', '', '', 1, 1234), (1e10, null, null, null, null, null, null)",
			"select a, b, c, s, f, bin(i), x from t", "255 | 999.99 | 838:59:59 | a | 12.5 | 111 | ab\n0 | -999.99 | -838:59:59 |  | 0 | 1 | a\n2 | 0.00 | 00:00:00 |  | 0 | 1 | 12\n255 | 0.00 | 00:00:00 |  | 0 | 0 | \n"},
		{lenient + "prepare s from 'insert into t (id, name) values (?, ?)'; set @a = 1, @b = 'a long name'; execute s using @a, @b; set @a = 2; execute s using @a, @b; set @a = 3; execute s using @a, @b", "select id, name, n from t", "1 | a lon | 0\n2 | a lon | 0\n3 | a lon | 0\n"},
		{lenient + "insert into t (id, name, n) values (1, 'x', 1); begin; update t set name = 'a long name' where id = 1; update t set name = 'b long name' where id = 1; update t set name = 'c long name' where id = 1; commit", "select name from t", "c lon\n"},
		{lenient + "create trigger tr before insert on t for each row set new.v = 'y'; insert into t (id, name) values (1, 'a long name')", "select name, n, v from t", "a lon | 0 | y\n"},
	} {
		s.test(t)
	}
	const child = "create table p (id int primary key); create table t (id int primary key, p int not null, foreign key (p) references p (id), check (id < 100)); insert into p values (1); set sql_mode = '';"
	for _, s := range []shows{
		{table, "insert into t (id) values (1)", "error 1364"},
		{table, "insert into t (id, name, n, d) values (1, 'a long name', 1, '2020-01-01')", "error 1406"},
		{lenient, "insert into t (id, name) values (1, null)", "error 1048"},
		{child, "insert into t (id) values (1)", "error 1452"},
		{child, "insert into t (id, p) values (101, 1)", "error 3819"},
		{child + "insert into t values (1, 1)", "insert into t values ('1x', 1)", "error 1062"},
		{"create table t (j json); set sql_mode = ''", "insert into t values ('{bad')", "error 3140"},
	} {
		s.testTwice(t)
	}
}

// TestExactIntegers: a decimal that a column of integers gets is rounded, and kept digit by digit. BIGINT UNSIGNED got a double, and 9223372036854775808
// for 2^64.
func TestExactIntegers(t *testing.T) {
	const table = "create table t (id int primary key, u bigint unsigned, s bigint);"
	for _, s := range []shows{
		{table + "insert into t values (1, 12345678901234567.0, -12345678901234567.4), (2, 1234567890123456789.4, 9223372036854775807.4), (3, 18446744073709551615.4, -9223372036854775808.4)",
			"select * from t", "1 | 12345678901234567 | -12345678901234567\n2 | 1234567890123456789 | 9223372036854775807\n3 | 18446744073709551615 | -9223372036854775808\n"},
		{table + "insert into t (id, u) values (1, 1), (2, 2); update t set u = 12345678901234567.0; update t set u = 12345678901234568.0; update t set u = 12345678901234569.0 where id = 1", "select u from t", "12345678901234569\n12345678901234568\n"},
		{table + "insert ignore into t values (1, 18446744073709551616, 9223372036854775808), (2, 36893488147419103232, -9223372036854775809)",
			"select * from t", "1 | 18446744073709551615 | 9223372036854775807\n2 | 18446744073709551615 | -9223372036854775808\n"},
		{table + "insert into t values (1, 1, 1); update ignore t set u = 18446744073709551616", "select u from t", "18446744073709551615\n"},
	} {
		s.test(t)
	}
	for _, s := range []shows{
		{table, "insert into t (id, u) values (1, 18446744073709551616)", "error 1264"},
		{table, "insert into t (id, u) values (1, 18446744073709551616.0)", "error 1264"},
		{table, "insert into t (id, u) select 1, 18446744073709551616", "error 1264"},
		{table, "insert into t (id, s) values (1, 9223372036854775808)", "error 1264"},
		{table, "insert into t (id, s) values (1, -9223372036854775809.0)", "error 1264"},
		{table, "insert into t (id, u) values (1, -1.0)", "error 1264"},
		{table + "insert into t values (1, 1, 1)", "update t set u = 18446744073709551616", "error 1264"},
	} {
		s.testTwice(t)
	}
}
