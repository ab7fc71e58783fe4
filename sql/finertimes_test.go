package sql

import "testing"

// TestFinerTimes: a constant between two values of an indexed column was rounded to one of them. The results are
// MySQL's.
func TestFinerTimes(t *testing.T) {
	const table = "create table t (id int primary key, dt datetime, ts timestamp null, d date, key (dt), key (ts), key (d)); set time_zone = '+00:00', timestamp = 1704104999.7;" +
		"insert into t values (1,'2024-01-01 10:30:00','2024-01-01 10:30:00','2024-01-02'),(2,'2024-01-01 10:29:59','2024-01-01 10:29:59','2024-01-01')"
	for _, s := range []shows{
		{table, "select id from t where dt > '2024-01-01 10:29:59.7'", "1\n"},
		{table, "select id from t where dt >= '2024-01-01 10:29:59.7'", "1\n"},
		{table, "select id from t where dt < '2024-01-01 10:29:59.7'", "2\n"},
		{table, "select id from t where dt <= '2024-01-01 10:29:59.7'", "2\n"},
		{table, "select id from t where '2024-01-01 10:29:59.7' < dt", "1\n"},
		{table, "select id from t where dt = '2024-01-01 10:29:59.7'", ""},
		{table, "select id from t where dt > timestamp'2024-01-01 10:29:59.7'", "1\n"},
		{table, "select id from t where dt > '2024-01-01 10:29:59.2'", "1\n"},
		{table, "select id from t where dt between '2024-01-01 10:29:58.7' and '2024-01-01 10:29:59.7'", "2\n"},
		{table, "select id from t where dt between '2024-01-01 10:29:59.7' and '2024-01-01 10:30:00'", "1\n"},
		{table, "select id from t where not dt <= '2024-01-01 10:29:59.7'", "1\n"},
		{table, "select id from t where ts > '2024-01-01 10:29:59.7'", "1\n"},
		{table, "select id from t where ts > now(6)", "1\n"},
		{table, "select id from t where now(6) - interval 1.5 second < dt order by id", "1\n2\n"},
		{table, "select id from t where d > '2024-01-01 10:00:00'", "1\n"},
		{table, "select id from t where d < '2024-01-01 10:00:00'", "2\n"},
		{table, "select id from t where d < now()", "2\n"},
		{table, "select b.id from t a join t b on a.id = b.id and b.dt > '2024-01-01 10:29:59.7'", "1\n"},
		{table + "; update t set id = 9 where dt > '2024-01-01 10:29:59.7'", "select id from t order by id", "2\n9\n"},
		{table + "; delete from t where d < now()", "select id from t", "1\n"},
		{table + "; delete from t where d between now() - interval 1 day and now()", "select id from t", "1\n"},
	} {
		s.testTwice(t)
	}
}
