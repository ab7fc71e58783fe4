package sql

import "testing"

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
