package sql

import "testing"

// TestTimeDigits: TIME(3) was refused, and TIME kept the fraction of a second.
func TestTimeDigits(t *testing.T) {
	const setup = "create table t (id int primary key, a time(3), b time, c time(6), key (a), key (b)); " +
		"insert into t values (1, '10:11:12.5', '10:11:12.7', '10:11:12.7'), (2, '-10:11:12.5555', '-00:00:00.4', '838:59:58.9'), (3, null, null, null), (4, 101112.5, '23:59:59.5', 101112)"
	const all = "select a, b, c from t order by id"
	for _, s := range []shows{
		{setup, all, "10:11:12.500 | 10:11:13 | 10:11:12.700000\n-10:11:12.556 | 00:00:00 | 838:59:58.900000\nNULL | NULL | NULL\n10:11:12.500 | 24:00:00 | 10:11:12.000000\n"},
		{setup + "; update t set a = '01:01:01.12355', b = a where id = 3; update t set b = c, a = c", all, "10:11:12.700 | 10:11:13 | 10:11:12.700000\n838:59:58.900 | 838:59:59 | 838:59:58.900000\nNULL | NULL | NULL\n10:11:12.000 | 10:11:12 | 10:11:12.000000\n"},
		{setup + "; update t set a = '01:01:01.12355' where id = 3; update t set a = '01:01:01.12355' where id = 3; update t set a = '01:01:01.99995' where id = 3", "select a from t where id = 3", "01:01:02.000\n"},
		{setup + "; insert into t (id, b) values (1, 0) on duplicate key update b = '00:00:00.5', a = c", "select a, b from t where id = 1", "10:11:12.700 | 00:00:01\n"},
		{setup + "; alter table t modify a time(1), modify c time", all, "10:11:12.5 | 10:11:13 | 10:11:13\n-10:11:12.6 | 00:00:00 | 838:59:59\nNULL | NULL | NULL\n10:11:12.5 | 24:00:00 | 10:11:12\n"},
		{setup + "; alter table t add d time(2) not null default '12:00:00.126', add e time default '-1:00:00.5'", "select d, e from t where id = 1", "12:00:00.13 | -01:00:01\n"},
		{setup, "select id from t where b = '10:11:12.7'", ""},
		{setup, "select id from t where b = '10:11:13'", "1\n"},
		{setup, "select id from t where b > '10:11:12.7' order by id", "1\n4\n"},
		{setup, "select id from t where b < '10:11:12.7' order by id", "2\n"},
		{setup, "select id from t where b between '00:00:00' and '10:11:12.9' order by id", "2\n"},
		{setup, "select id from t where a in ('10:11:12.5', '-10:11:12.556') order by id", "1\n2\n4\n"},
		{setup, "select id from t where c = 101112", "4\n"},
		{setup, "select min(a), max(a), max(b), count(distinct a), (select max(b) from t) = '24:00:00' from t", "-10:11:12.556 | 10:11:12.500 | 24:00:00 | 2 | 1\n"},
		{setup, "select a, count(*) from t group by a having a > '00:00:00'", "10:11:12.500 | 2\n"},
		{setup, "select concat(a), concat(b), json_array(a), b + 0, a + interval 1 hour > '11:00:00' from t where id = 1", "10:11:12.500 | 10:11:13 | [\"10:11:12.500\"] | 101113 | 1\n"},
		{setup, "select if(id = 1, a, b), ifnull(a, c), case when id = 1 then b else c end, coalesce(a, a) from t where id < 3 order by id", "10:11:12.500 | 10:11:12.500 | 10:11:13 | 10:11:12.500\n00:00:00 | -10:11:12.556 | 838:59:58.900000 | -10:11:12.556\n"},
		{setup + "; create table u (x time, y time(2)); insert into u values ('10:11:13', '10:11:12.5')", "select t.id, y from t join u on t.b = u.x union all select id, x from t join u on a = y order by 1, 2", "1 | 10:11:12.50\n1 | 10:11:13\n4 | 10:11:13\n"},
		{setup + "; create table u (x time(2), y time(1) as (x), check (x > '01:00:00')); insert into u (x) values ('02:00:00.256')", "select x, y from u", "02:00:00.26 | 02:00:00.3\n"},
		{setup + "; create table u as select a, b, c m from t; create table v like u", "show create table v", "v | CREATE TABLE `v` (\n  `a` time(3),\n  `b` time,\n  `m` time(6)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci\n"},
		{"create table u (a time(2) default '1:2:3.456', b time(0) default '01:02:03.5', c time(3) not null default 0)", "show create table u", "u | CREATE TABLE `u` (\n  `a` time(2) DEFAULT '01:02:03.46',\n  `b` time DEFAULT '01:02:04',\n  `c` time(3) NOT NULL DEFAULT '00:00:00.000'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci\n"},
		{setup, "select column_type, datetime_precision from information_schema.columns where table_name = 't' and table_schema = 'd' order by ordinal_position", "int | NULL\ntime(3) | 3\ntime | 0\ntime(6) | 6\n"},
		{"create table p (k time(3) primary key, v int); insert into p values ('10:00:00.1235', 1); insert into p values ('10:00:00.12449', 1) on duplicate key update v = v + 1; create table q (k time(3), foreign key (k) references p (k) on update cascade); insert into q values ('10:00:00.12399'); update p set k = '11:00:00.9999'", "select p.*, q.k from p, q", "11:00:01.000 | 2 | 11:00:01.000\n"},
	} {
		s.test(t)
	}
}

// TestTimeDigitsOfVariables: parameters and variables of procedures round as columns do.
func TestTimeDigitsOfVariables(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("create database d")
	c.exec("use d")
	c.exec("create procedure f(x time(1)) begin declare y time(2) default '00:00:00.126'; declare z time default '00:00:00.5'; select x, y, z; end")
	if got, want := c.shown("call f('10:00:00.06')"), "10:00:00.1 | 00:00:00.13 | 00:00:01\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTimeDigitsErrors: there are at most six digits.
func TestTimeDigitsErrors(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("create database d")
	c.exec("use d")
	c.exec("create table t (a time(3) primary key, b time)")
	for query, want := range map[string]struct {
		number int
		state  string
	}{
		"create table u (a time(7))": {1426, "42000"}, "create table u (a time(99999999999999999999))": {1105, "HY000"}, "alter table t modify b time(9)": {1426, "42000"},
		"insert into t values ('10:00:00.1235', 0), ('10:00:00.124', 0)": {1062, "23000"}, "insert into t values ('x', 0)": {1292, "22007"}, "insert into t values ('10:00:00', '839:00:00')": {1292, "22007"},
	} {
		c.wantCode(query, want.number, want.state)
	}
}
