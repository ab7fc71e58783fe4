package sql

import (
	"testing"

	"github.com/farmsql/farmsql/sql/compat"
)

// TestImpossibleTimes: the 30th of February was the 3rd, so that it found and deleted rows of that
// day.
func TestImpossibleTimes(t *testing.T) {
	const setup = "create table t (d date primary key, e datetime, n int, s varchar(30), key (e)); insert into t values ('2024-02-03', '2024-02-03 02:00:00', 1, '2024-02-30')"
	for _, s := range []shows{
		{setup, "select n from t where d = '2024-02-30'", "error 1292"},
		{setup, "select n from t where d in ('2024-02-03', '2024-02-31')", "error 1292"},
		{setup, "select n from t where e between '2024-02-30' and '2024-03-01'", "error 1292"},
		{setup, "select n from t where e > '2023-02-29 01:00:00'", "error 1292"},
		{setup, "select n from t where e = '2024-02-03 25:00:00'", "error 1292"},
		{setup, "select n from t where n in (select n from t where d = '2024-02-30')", "error 1292"},
		{setup, "update t set n = 2 where d = '2024-02-30'", "error 1292"},
		{setup, "update t, t u set t.n = 2 where t.d = u.d and t.d = '2024-02-30'", "error 1292"},
		{setup, "delete from t where d = '2024-02-30'", "error 1292"},
		{setup + "; prepare p from 'select n from t where d = ?'; set @d = '2024-02-30'", "execute p using @d", "error 1292"},
		{setup + "; delete from t where d = cast('2024-02-30' as date)", "select count(*) from t", "1\n"},
		{setup, "select n from t where d = s", ""},
		{setup, "select a.n from t a join t b on a.d = b.s", ""},
		{setup, "select cast('2024-02-30' as date), cast(s as date), cast('2023-02-29 10:00:00' as datetime) from t", "NULL | NULL | NULL\n"},
		{setup, "select n from t where d = '2024-2-3'", "1\n"},
		{setup, "select n from t where d = '20240203' and e = '2024-02-03T02:00:00'", "1\n"},
		{setup, "select cast('2024-02-29' as date), cast('2024-02-03 2:0:0' as datetime)", "2024-02-29 | 2024-02-03 02:00:00\n"},
	} {
		s.test(t)
	}
}

func TestIsImpossibleTime(t *testing.T) {
	for text, want := range map[string]bool{
		"2024-02-30": true, "2024-02-29": false, "2023-02-29": true, "1900-02-29": true, "2000-2-29": false, "2024-13-01": true, "2024-04-31 00:00:00": true,
		"2024-12-32": true, "2024-1-1 24:00:00": true, "2024-1-1T23:60:00": true, "2024-1-1 23:59:60": true, "2024-1-1 23:59:59.999999": false, "  2024.5.6": false,
		"2024/02/30": true, "0000-00-00": false, "2024-00-31": false, "20240230": false, "": false, "abc": false, "2024": false, "2024-": false, "12:30:99": true,
		"2024-02-03 00:00:00+23:59": false, "99999999999999999999-02-30": false,
	} {
		if got := compat.IsImpossibleTime(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A sum of numbers that is compared with a date is read by its digits, as a number is: UPDATE and DELETE
// refused it.
func TestComputedNumbersAsDates(t *testing.T) {
	const setup = "create table t (id int primary key, d date, dt datetime, key (d), key (dt)); insert into t values (1, '2024-01-01', '2024-01-01 00:00:00'), (2, '2024-01-02', '2024-01-02 01:02:03')"
	for _, s := range []shows{
		{setup, "select id from t where d = 20240101 + 0", "1\n"},
		{setup, "select id from t where d >= 20240101 + 1", "2\n"},
		{setup, "select id from t where dt = 20240102010200 + 3", "2\n"},
		{setup, "select id from t where d between 20240101 + 0 and 20240102 - 1", "1\n"},
		{setup + "; delete from t where d = 20240101 + 0", "select id from t", "2\n"},
		{setup + "; update t set d = null where dt > 20240101000000 + 1", "select id from t where d is null", "2\n"},
		{setup + "; update t set id = 7 where d between 20240102 + 0 and 20240103 + 0", "select id from t order by id", "1\n7\n"},
	} {
		s.testTwice(t)
	}
}
