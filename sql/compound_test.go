package sql

import "testing"

// TestCompoundIntervals: intervals of several units were syntax errors. The results are MariaDB's.
func TestCompoundIntervals(t *testing.T) {
	const table = "create table t (d datetime, v varchar(20)); insert into t values ('2020-01-01 00:00:00', '1 2:3:4')"
	for _, s := range []shows{
		{"", "select date_add('2020-01-01', interval '1 2' day_hour), date_add('2020-01-01', interval '1 2:3' day_minute), date_add('2020-01-01', interval '1 2:3:4' DAY_SECOND)", "2020-01-02 02:00:00 | 2020-01-02 02:03:00 | 2020-01-02 02:03:04\n"},
		{"", "select date_add('2020-01-01', interval '1 2:3:4.5' day_microsecond), date_add('2020-01-01', interval '2:3.25' minute_microsecond), date_add('2020-01-01', interval '2:3:4.5' hour_microsecond)", "2020-01-02 02:03:04.500000 | 2020-01-01 00:02:03.250000 | 2020-01-01 02:03:04.500000\n"},
		{"", "select date_add('2020-01-01', interval '5' second_microsecond), date_add('2020-01-01', interval '1.5' second_microsecond)", "2020-01-01 00:00:00.500000 | 2020-01-01 00:00:01.500000\n"},
		{"", "select '2020-01-01 00:00:00' + interval '1:2' hour_minute, '2020-01-01 00:00:00' - interval '1:2:3' hour_second, date_sub('2020-01-01', interval '2:3' minute_second)", "2020-01-01 01:02:00 | 2019-12-31 22:57:57 | 2019-12-31 23:57:57\n"},
		{"", "select date_add('2020-01-01 00:00:00', interval '1-2' year_month), date_sub('2020-03-31 00:00:00', interval '0-1' year_month)", "2021-03-01 00:00:00 | 2020-02-29 00:00:00\n"},
		{"", "select date_add('2020-01-01', interval '-1 2' day_hour), date_add('2020-01-01', interval 5 day_hour), date_add('2020-01-01', interval 1.5 day_hour), date_add('2020-01-01', interval '1 2 3' day_hour), date_add('2020-01-01', interval null day_hour)", "2019-12-30 22:00:00 | 2020-01-01 05:00:00 | 2020-01-02 05:00:00 | NULL | NULL\n"},
		{table, "select d + interval v day_second, d - interval '1:1' hour_minute from t where d < now() - interval '0 1' day_hour", "2020-01-02 02:03:04 | 2019-12-31 22:59:00\n"},
		{table + "; create view w as select d + interval '1 2' day_hour x from t", "select x from w", "2020-01-02 02:00:00\n"},
		{table, "select extract(day_hour from d + interval '1 2' day_hour), 'day_hour' from t", "202 | day_hour\n"},
	} {
		s.testTwice(t)
	}
}
