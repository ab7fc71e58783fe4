package sql

import (
	"strings"
	"testing"
)

// TestTimeParts: times may be texts and numbers, too.
func TestTimeParts(t *testing.T) {
	for _, s := range []shows{
		{"", "select time_to_sec('22:23:00'), time_to_sec('00:39:38.9'), time_to_sec('-01:00:00'), time_to_sec(101112), time_to_sec('100:00:00')", "80580 | 2378 | -3600 | 36672 | 360000\n"},
		{"", "select time_to_sec('2020-01-01 00:01:00'), time_to_sec(timestamp '2020-01-01 00:01:02'), time_to_sec(time '10:20:30'), time_to_sec(null), time_to_sec('x')", "60 | 62 | 37230 | NULL | NULL\n"},
		{"", "select microsecond('12:00:00.123456'), microsecond('2019-12-31 23:59:59.000010'), microsecond('-01:00:00.5'), microsecond(null), microsecond('12:00:00')", "123456 | 10 | 500000 | NULL | 0\n"},
		{"create table t (tm time(6), d date, s varchar(20)); insert into t values ('10:00:00.5', '2020-01-01', '01:00')", "select (time_to_sec(tm) * 1000000 + microsecond(tm)) - (time_to_sec(s) * 1000000 + microsecond(s)), time_to_sec(d) from t", "32400500000 | 0\n"},
	} {
		s.test(t)
	}
}

// TestPartsOfTimes: HOUR, MINUTE and SECOND of what is no date were NULL. The results are MariaDB's.
func TestPartsOfTimes(t *testing.T) {
	const parts = "concat_ws(':', hour(s), minute(s), second(s), microsecond(s))"
	for _, c := range []struct{ value, want string }{
		{"'20200101101112'", "10:11:12:0"},
		{"'200101101112.25'", "10:11:12:250000"},
		{"'272:59:59'", "272:59:59:0"},
		{"'-10:11:12.5'", "10:11:12:500000"},
		{"101112", "10:11:12:0"},
		{"-101112.75", "10:11:12:750000"},
		{"20200101101112", "10:11:12:0"},
		{"1e5", "10:0:0:0"},
		{"'2020-01-01 10:11:12.5'", "10:11:12:500000"},
		{"'2020-01-01T10'", "10:0:0:0"},
		{"'2020/1/1 10:11'", "10:11:0:0"},
		{"'20200101T101112'", "10:11:12:0"},
		{"'2020-01-01'", "0:0:0:0"},
		{"'10:11'", "10:11:0:0"},
		{"'1011'", "0:10:11:0"},
		{"'10.5'", "0:0:10:500000"},
		{"'1 10:11:12'", "34:11:12:0"},
		{"'1 10'", "34:0:0:0"},
		{"' +10:11:12 '", "10:11:12:0"},
		{"'10:11:12abc'", "10:11:12:0"},
		{"'839:00:00'", "838:59:59:0"},
		{"8390000", "838:59:59:0"},
		{"-20200101101112", "838:59:59:0"},
		{"true", "0:0:1:0"},
		{"time '10:11:12.5'", "10:11:12:500000"},
		{"timestamp '2020-01-01 10:11:12'", "10:11:12:0"},
		{"date '2020-01-01'", "0:0:0:0"},
		{"x'31303A31313A3132'", "10:11:12:0"},
	} {
		shows{"", "select " + parts + " from (select " + c.value + " as s) v", c.want + "\n"}.test(t)
	}
	for _, none := range []string{"'x'", "''", "':10'", "'10:60:00'", "'10:11:60'", "106000", "9999999999", "18446744073709551615", "'2020-13-01 10:11:12'",
		"'2020-02-30 10:11:12'", "'2020-01-01 25:00:00'", "'2020-01-01 x'", "'2020010110111'", "20201301101112"} {
		shows{"do hour(" + none + ")", "show warnings", "Warning | 1292 | Truncated incorrect time value: '" + strings.Trim(none, "'") + "'\n"}.test(t)
		shows{"", "select hour(" + none + ")", "NULL\n"}.test(t)
	}
	shows{"create table t (a time, b datetime, d varchar(20), n int); insert into t values ('-10:11:12', '2020-01-01 13:14:15', '272:59:59', 1112), (null, null, null, null)",
		"select hour(a), minute(b), second(d), minute(n) from t", "10 | 14 | 59 | 11\nNULL | NULL | NULL | NULL\n"}.testTwice(t)
}
