package sql

import "testing"

// TestWeeks: WEEK was 0, or a week that does not exist, for days of a week of another year.
func TestWeeks(t *testing.T) {
	const setup = "create table t (d date, dt datetime); insert into t values ('2010-01-03', '2010-01-03 23:59:59'), ('2012-12-31', '2012-12-31'), ('2015-12-28', null), ('2016-01-01', '2016-01-01'), ('2021-01-03', '2021-01-03')"
	for _, s := range []shows{
		{setup, "select week(d, 0), week(d, 1), week(d, 2), week(d, 3), week(d, 4), week(d, 5), week(d, 6), week(d, 7), week(d), yearweek(d), yearweek(d, 1), yearweek(d, 3), weekofyear(d) from t order by d",
			"1 | 0 | 1 | 53 | 1 | 0 | 1 | 52 | 1 | 201001 | 200953 | 200953 | 53\n" +
				"53 | 53 | 53 | 1 | 53 | 53 | 1 | 53 | 53 | 201253 | 201301 | 201301 | 1\n" +
				"52 | 53 | 52 | 53 | 52 | 52 | 52 | 52 | 52 | 201552 | 201553 | 201553 | 53\n" +
				"0 | 0 | 52 | 53 | 0 | 0 | 52 | 52 | 0 | 201552 | 201553 | 201553 | 53\n" +
				"1 | 0 | 1 | 53 | 1 | 0 | 1 | 52 | 1 | 202101 | 202053 | 202053 | 53\n"},
		{setup, "select week(dt, 3) from t order by d", "53\n1\nNULL\n53\n53\n"},
		{setup, "select week('2008-02-20', 3), week('2000-01-01', 2), week(20081231, 3), week('x', 1), week(null), yearweek('x'), week('2008-02-20', null), yearweek('2008-02-20', null), week(null, null)", "8 | 52 | 1 | NULL | NULL | NULL | 7 | 200807 | NULL\n"},
	} {
		s.testTwice(t)
	}
}

// TestTimeSums: there was no ADDTIME, SUBTIME, MAKEDATE and SEC_TO_TIME.
func TestTimeSums(t *testing.T) {
	const setup = "create table t (tm time, dt datetime, s varchar(30)); insert into t values ('-01:00:00', '2020-02-28 23:00:00', '10:00')"
	for _, s := range []shows{
		{setup, "select addtime('10:00:00', '01:30:00'), addtime('2007-12-31 23:59:59.999999', '1 1:1:1.000002'), subtime('10:00:00', '00:30:00'), subtime('01:00:00', '02:00:00')", "11:30:00 | 2008-01-02 01:01:01.000001 | 09:30:00 | -01:00:00\n"},
		{setup, "select addtime(tm, '00:30:00'), addtime(s, tm), subtime(tm, tm), addtime(tm, 10000) from t", "-00:30:00.000000 | 09:00:00 | 00:00:00.000000 | 00:00:00.000000\n"},
		{setup, "select addtime(dt, '1 2:00:00') > '2020-03-01 00:59:59', subtime(dt, '-01:00:00') = '2020-02-29' from t", "1 | 1\n"},
		{setup, "select addtime('838:00:00', '01:00:00'), addtime('x', '01:00:00'), addtime('01:00:00', '2020-01-01 00:00:00'), addtime('01:00:00', 'x 1:0:0'), addtime(null, '1'), addtime('9999-12-31 23:00:00', '02:00:00')", "838:59:59 | NULL | NULL | NULL | NULL | NULL\n"},
		{setup, "select addtime('2020-01-01 00:00:00', '110000 00:00:00'), subtime('2020-02-04 22:59:59', '2147483647 00:00:00'), addtime('00:00:00', '-2147483648 00:00:00')", "2020-02-04 22:59:59 | 2020-01-01 00:00:00 | -838:59:59\n"},
		{setup, "select makedate(2011, 31), makedate(2011, 32), makedate(2011, 0), makedate(2011, 366), makedate(69, 1), makedate(70, 1), makedate(9999, 366), makedate(10000, 1), makedate(null, 1)", "2011-01-31 | 2011-02-01 | NULL | 2012-01-01 | 2069-01-01 | 1970-01-01 | NULL | NULL | NULL\n"},
		{setup, "select sec_to_time(2378), sec_to_time(-3661), sec_to_time(4000000), sec_to_time(-4000000), sec_to_time('60'), sec_to_time(null), sec_to_time(0.5)", "00:39:38.000000 | -01:01:01.000000 | 838:59:59.000000 | -838:59:59.000000 | 00:01:00.000000 | NULL | 00:00:00.500000\n"},
	} {
		s.testTwice(t)
	}
}

// TestMovedTimes: a TIME plus or minus an interval went round at midnight.
func TestMovedTimes(t *testing.T) {
	const setup = "create table t (id int primary key, tm time, i int); insert into t values (1, '-01:00:00', 90), (2, '23:00:00', 120), (3, '800:00:00', 6000), (4, null, 1), (5, '10:00:00', null)"
	for _, s := range []shows{
		{setup, "select tm + interval i minute from t order by id", "00:30:00.000000\n25:00:00.000000\nNULL\nNULL\nNULL\n"},
		{setup, "select tm - interval i minute, date_sub(tm, interval i minute) from t where id < 4 order by id", "-02:30:00.000000 | -02:30:00.000000\n21:00:00.000000 | 21:00:00.000000\n700:00:00.000000 | 700:00:00.000000\n"},
		{setup, "select date_add(tm, interval 2 hour), tm + interval 1 microsecond, interval 3 second + tm, adddate(tm, interval '1' hour) from t where id = 1", "01:00:00.000000 | -00:59:59.999999 | -00:59:57.000000 | 00:00:00.000000\n"},
		{setup, "select cast('01:00:00' as time) - interval 90 minute, cast('10:00:00' as time) - interval 11 hour", "-00:30:00.000000 | -01:00:00.000000\n"},
		{setup, "select id from t where tm + interval 1 hour > '24:00:00' or tm - interval 1 hour < '-01:30:00' order by id", "1\n3\n"},
		{setup, "select date('2020-01-01 10:00:00' + interval 1 hour), cast('10:00:00' as time) + interval 1 day > '2020-01-01'", "2020-01-01 | 1\n"},
	} {
		s.testTwice(t)
	}
	s := shows{setup + "; create procedure p() select tm + interval 2 hour from t where id = 2", "call p()", "25:00:00.000000\n"}
	s.test(t)
}
