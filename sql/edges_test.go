package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// TestIgnoreCuts: INSERT IGNORE of a long number into a text panicked, of a text cut bytes, and
// UPDATE IGNORE kept what the column had. The results are MariaDB's.
func TestIgnoreCuts(t *testing.T) {
	const table = "create table c (id int primary key, s varchar(3), b varbinary(3), x char(3));"
	for _, s := range []shows{
		{table + "insert ignore into c values (1, 'äöüß', 'äöüß', 12345), (2, date '2020-01-01', 1.25, 'ab')", "select s, hex(b), x from c", "äöü | C3A4C3 | 123\n202 | 312E32 | ab\n"},
		{table + "insert into c values (1, 'x', 'x', 'x'); update ignore c set s = 'äöüß', b = 12345, x = 98765.5", "select s, b, x from c", "äöü | 123 | 987\n"},
		{table + "insert into c values (1, 'x', 'x', 'x'); insert ignore into c (id) values (1) on duplicate key update s = 'abcd'", "select s from c", "abc\n"},
		{table + "insert ignore into c (id, s) values (1, 'abcd')", "show warnings", "Warning | 1265 | Data truncated for column 's' at row 1\n"},
		{table, "insert into c values (1, 'abcd', '', '')", "error 1406"},
		{"create table t (id int primary key, x tinytext); insert ignore into t values (1, repeat('a', 300)), (2, repeat('é', 130)), (3, concat('a', repeat('日', 100)))", "select length(x), char_length(x) from t", "255 | 255\n254 | 127\n253 | 85\n"},
		{"create table u (id int primary key, a tinyint unsigned, b bigint unsigned); insert ignore into u values (1, -1, -7.5), (2, '-3', 4), (3, 300, -0.4)", "select a, b from u", "0 | 0\n0 | 4\n255 | 0\n"},
		{"create table u (id int primary key, a tinyint unsigned); insert into u values (1, 7), (2, 8); update ignore u set a = a * 1.0 - 9 where id = 1", "select a from u", "0\n8\n"},
		{"create table u (id int primary key, a tinyint unsigned); insert into u values (1, 7); update ignore u set a = -2", "show warnings", "Warning | 1264 | Out of range value for column 'a' at row 1\n"},
		{"create table u (id int primary key, a tinyint unsigned)", "insert into u values (1, -1)", "error 1264"},
	} {
		s.test(t)
	}
}

// TestUnixTimestampOfValues: UNIX_TIMESTAMP of what needs the session panicked, and did not know the
// times that numbers spell.
func TestUnixTimestampOfValues(t *testing.T) {
	for _, s := range []shows{
		{"set @a = 20200101", "select unix_timestamp(@a)", "1577836800\n"},
		{"set @a = '2020-01-01 00:00:01'", "select unix_timestamp(@a)", "1577836801.000000\n"},
		{"set @a = null", "select unix_timestamp(@a)", "NULL\n"},
		{"", "select unix_timestamp(20200101), unix_timestamp(200101), unix_timestamp(20200101101112.5), unix_timestamp(20200101000000 + 1)", "1577836800 | 1577836800 | 1577873472.5 | 1577836801\n"},
		{"", "select unix_timestamp('2020-01-01 10:00:00.25'), unix_timestamp(timestamp '2020-01-01 10:00:00'), unix_timestamp(null), unix_timestamp('a' + 1)", "1577872800.25 | 1577872800 | NULL | 0\n"},
		{"", "select unix_timestamp() = unix_timestamp(now()), unix_timestamp(current_date) > 0", "1 | 1\n"},
	} {
		s.testTwice(t)
	}
}

// TestRandOfNull: NULL is the seed 0; it panicked.
func TestRandOfNull(t *testing.T) {
	shows{"create table t (a int); insert into t values (null), (0)", "select rand(null) = rand(0), rand(a) = rand(0) from t", "1 | 1\n1 | 1\n"}.testTwice(t)
}

// TestPrecisionTooBig: a second has six digits.
func TestPrecisionTooBig(t *testing.T) {
	for _, s := range []shows{
		{"", "select cast('2020-01-01' as datetime(7))", "error 1426"},
		{"", "select convert('10:11:12', time(7))", "error 1426"},
		{"", "explain select cast('2020-01-01' as datetime(7))", "error 1426"},
		{"", "create view v as select cast('2020-01-01' as datetime(7)) x", "error 1426"},
		{"", "create table t (a datetime(7))", "error 1426"},
		{"", "create table t (a timestamp(7))", "error 1426"},
		{"", "select now(7)", "error 1426"},
		{"", "select cast('2020-01-01 10:11:12.123456' as datetime(6))", "2020-01-01 10:11:12.123456\n"},
	} {
		s.test(t)
	}
}

// tables joins n times the table e.
func tables(n int, between string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("e e%d", i)
	}
	return strings.Join(all, between)
}

// TestTooManyTables: a join has at most 61 tables; subqueries that could be more of them stay
// subqueries.
func TestTooManyTables(t *testing.T) {
	var exists []string
	for i := range 5 {
		exists = append(exists, fmt.Sprintf("exists (select 1 from e x where x.a = e%d.a) and e%d.a in (select a from e)", i, i))
	}
	const table = "create table e (a int primary key); insert into e values (1);"
	for _, s := range []shows{
		{table, "select count(*) from " + tables(61, " join "), "1\n"},
		{table, "select count(*) from " + tables(61, ", ") + " where " + strings.Join(exists, " and "), "1\n"},
		{table, "select count(*) from " + tables(62, " join "), "error 1116"},
		{table, "select count(*) from " + tables(65, ", "), "error 1116"},
		{table, "explain select 1 from " + tables(65, ", "), "error 1116"},
		{table, "create view v as select 1 from " + tables(65, ", "), "error 1116"},
		{table, "create table u select 1 from " + tables(65, ", "), "error 1116"},
		{table, "update " + tables(65, ", ") + " set e1.a = 2", "error 1116"},
		{table, "delete e1 from " + tables(65, ", "), "error 1116"},
		{table, "select 1 from (" + tables(65, ", ") + ")", "error 1116"},
	} {
		s.test(t)
	}
}

// TestMinusInterval: -INTERVAL + date subtracts the interval.
func TestMinusInterval(t *testing.T) {
	for _, s := range []shows{
		{"", "select -interval 1 day + '2020-01-01', interval 1 day + '2020-01-01'", "2019-12-31 | 2020-01-02\n"},
		{"create table t (d date); insert into t values ('2020-03-01')", "select d from t where -interval 1 day + d = '2020-02-29'", "2020-03-01\n"},
	} {
		s.testTwice(t)
	}
}

// TestProcedureBeforeStatement: the body of a procedure ends before the semicolon of the next statement.
func TestProcedureBeforeStatement(t *testing.T) {
	const query = "create procedure a() select 1; select 2"
	stmt, text, _, err := parser{}.ParseWithOptions(context.Background(), query, ';', true, sqlparser.ParserOptions{})
	if err != nil || text != "create procedure a() select 1" {
		t.Fatal(text, err)
	}
	d := stmt.(*sqlparser.DDL)
	if body := text[d.SubStatementPositionStart:d.SubStatementPositionEnd]; strings.TrimSpace(body) != "select 1" {
		t.Errorf("body %q", body)
	}
}

// TestPrepareOfRoutines: bodies are kept as they are written, so that MySQL does not prepare them;
// EXECUTE panicked.
func TestPrepareOfRoutines(t *testing.T) {
	for _, s := range []shows{
		{"", "prepare p from 'create procedure b() select 3'", "error 1295"},
		{"create table t (a int)", "prepare p from 'create trigger g before insert on t for each row set new.a = 1'", "error 1295"},
		{"", "prepare p from 'create event e on schedule every 1 day do select 1'", "error 1295"},
		{"", "prepare p from 'create view v as select 3 x'", "error 1295"},
	} {
		s.test(t)
	}
	t.Run("nothing is left", func(t *testing.T) {
		c := shows{}.client(t)
		if got := c.shown("prepare p from 'create procedure b() select 3'"); got != "error 1295" {
			t.Fatal(got)
		}
		if got := c.shown("execute p"); got != "error 1243" {
			t.Error(got)
		}
	})
}
