package sql

import (
	"testing"
	_ "time/tzdata"
)

// TestTimestampZones: a TIMESTAMP was the wall time of whoever had inserted it.
func TestTimestampZones(t *testing.T) {
	const setup = "set time_zone = '+05:30'; create table t (id int primary key, ts timestamp null, dt datetime, v int, key (ts)); " +
		"insert into t values (1, '2020-01-01 00:00:00', '2020-01-01 00:00:00', 0), (2, '2020-06-01 12:00:00', '2020-06-01 12:00:00', 0), (3, null, null, 0); set time_zone = '-08:00'"
	const all = "select id, ts, dt, unix_timestamp(ts) from t order by id"
	for _, s := range []shows{
		{setup, all, "1 | 2019-12-31 10:30:00 | 2020-01-01 00:00:00 | 1577817000\n2 | 2020-05-31 22:30:00 | 2020-06-01 12:00:00 | 1590993000\n3 | NULL | NULL | NULL\n"},
		{setup + "; set time_zone = '+05:30'", all, "1 | 2020-01-01 00:00:00 | 2020-01-01 00:00:00 | 1577817000\n2 | 2020-06-01 12:00:00 | 2020-06-01 12:00:00 | 1590993000\n3 | NULL | NULL | NULL\n"},
		{setup, "select id from t where ts = '2019-12-31 10:30:00'", "1\n"},
		{setup, "select id from t where ts = '2020-01-01 00:00:00'", ""},
		{setup, "select id from t where ts > '2019-12-31 10:29:59' and ts <= '2020-05-31 22:30:00' order by ts desc", "2\n1\n"},
		{setup, "select max(ts), min(ts), date(min(ts)), concat(min(ts)) from t", "2020-05-31 22:30:00 | 2019-12-31 10:30:00 | 2019-12-31 | 2019-12-31 10:30:00\n"},
		{setup, "select a.id, b.id from t a join t b on a.ts = b.ts order by 1", "1 | 1\n2 | 2\n"},
		{setup, "select ts from t where id = 1 union select dt from t where id = 1", "2019-12-31 10:30:00\n2020-01-01 00:00:00\n"},
		{setup + "; update t set v = 1; update t set ts = ts + interval 1 hour where ts = '2019-12-31 10:30:00'; delete from t where id = 2; set time_zone = '+00:00'", "select * from t order by id", "1 | 2019-12-31 19:30:00 | 2020-01-01 00:00:00 | 1\n3 | NULL | NULL | 1\n"},
		{setup + "; alter table t modify dt timestamp null, add ts3 timestamp(3) null; update t set ts3 = ts; alter table t modify ts datetime; create unique index u on t (ts3); set time_zone = '+00:00'", "select * from t order by id", "1 | 2019-12-31 10:30:00 | 2020-01-01 08:00:00 | 0 | 2019-12-31 18:30:00.000\n2 | 2020-05-31 22:30:00 | 2020-06-01 20:00:00 | 0 | 2020-06-01 06:30:00.000\n3 | NULL | NULL | 0 | NULL\n"},
		{setup + "; create table u as select id, ts from t; set time_zone = '+00:00'", "select * from u order by id", "1 | 2019-12-31 18:30:00\n2 | 2020-06-01 06:30:00\n3 | NULL\n"},
		{"create table k (ts timestamp primary key, v int); set time_zone = '+02:00'; insert into k values ('2020-01-01 02:00:00', 1); set time_zone = '+00:00'; insert into k values ('2020-01-01 00:00:00', 1) on duplicate key update v = v + 1; set time_zone = '-01:00'; replace into k values ('2019-12-31 23:00:00', 5)", "select * from k", "2019-12-31 23:00:00 | 5\n"},
		{"create table n (ts timestamp, v int); set time_zone = '+02:00'; insert into n values ('2020-01-01 02:00:00', 1); set time_zone = '-01:00'; update n set v = 2; insert into n values ('2020-01-01 02:00:00', 3); delete from n where v = 3", "select * from n", "2019-12-31 23:00:00 | 2\n"},
		{"set timestamp = 1700000000; set time_zone = '+05:30'; create table c (id int primary key, ts timestamp default current_timestamp, up timestamp null on update current_timestamp, v int); insert into c (id, ts) values (1, default), (2, now()); insert into c (id) values (3); update c set v = 1; set time_zone = '+00:00'", "select ts, up from c", "2023-11-14 22:13:20 | 2023-11-14 22:13:20\n2023-11-14 22:13:20 | 2023-11-14 22:13:20\n2023-11-14 22:13:20 | 2023-11-14 22:13:20\n"},
		{"create table p (ts timestamp primary key); create table f (id int, ts timestamp, foreign key (ts) references p (ts) on update cascade); set time_zone = '+03:00'; insert into p values ('2020-05-05 05:05:05'); set time_zone = '+00:00'; insert into f values (1, '2020-05-05 02:05:05'); set time_zone = '+07:00'; update p set ts = '2022-01-01 00:00:00'; set time_zone = '+00:00'", "select f.ts, p.ts from f join p on f.ts = p.ts", "2021-12-31 17:00:00 | 2021-12-31 17:00:00\n"},
		{"set time_zone = '+09:00'; create table g (ts timestamp, d date as (date(ts)) stored, check (ts > '2020-01-01')); insert into g (ts) values ('2020-01-01 03:00:00'); set time_zone = '+00:00'", "select ts, d from g", "2019-12-31 18:00:00 | 2020-01-01\n"},
		{"create table h (a timestamp null, b int); create trigger tr before insert on h for each row set new.a = '2020-02-02 02:02:02'; set time_zone = '+09:00'; insert into h (b) values (1); set time_zone = '+00:00'", "select a, hour(a) from h", "2020-02-01 17:02:02 | 17\n"},
		{"set time_zone = '-08:00'; create table x (ts timestamp, d date as (date(ts)) virtual, key (d)); insert into x (ts) values ('2020-01-01 20:00:00'); set time_zone = '+08:00'; update x set ts = '2020-02-02 00:00:00'; set time_zone = '+00:00'", "select * from x where d = '2020-02-02'", "2020-02-02 00:00:00 | 2020-02-02\n"},
	} {
		s.test(t)
	}
}

// TestTimestampsWhereClocksChange: of two instants with one wall time each stays what it is, in rows and in
// indexes, and a wall time that clocks skip is none.
func TestTimestampsWhereClocksChange(t *testing.T) {
	const setup = "create table t (id int primary key, ts timestamp null, v int, key (ts), unique key (ts, id)); " +
		"set time_zone = '+00:00'; insert into t values (1, '2023-11-05 05:30:00', 0), (2, '2023-11-05 06:30:00', 0), (3, '2023-11-05 04:30:00', 0), (4, '2023-11-05 07:30:00', 0); set time_zone = 'America/New_York'"
	const utc = "; set time_zone = '+00:00'"
	for _, s := range []shows{
		{setup, "select id, ts, unix_timestamp(ts) from t order by id", "1 | 2023-11-05 01:30:00 | 1699162200\n2 | 2023-11-05 01:30:00 | 1699165800\n3 | 2023-11-05 00:30:00 | 1699158600\n4 | 2023-11-05 02:30:00 | 1699169400\n"},
		{setup + "; update t set v = 1; update t set v = 2, id = id + 10 where ts = '2023-11-05 01:30:00'" + utc, "select * from t order by id", "3 | 2023-11-05 04:30:00 | 1\n4 | 2023-11-05 07:30:00 | 1\n11 | 2023-11-05 05:30:00 | 2\n12 | 2023-11-05 06:30:00 | 2\n"},
		{setup + "; delete from t where id = 2" + utc, "select id, ts from t order by id", "1 | 2023-11-05 05:30:00\n3 | 2023-11-05 04:30:00\n4 | 2023-11-05 07:30:00\n"},
		{setup + "; delete from t where ts = '2023-11-05 01:30:00'" + utc, "select id, ts from t order by id", "3 | 2023-11-05 04:30:00\n4 | 2023-11-05 07:30:00\n"},
		{setup + "; insert into t values (5, '2023-11-05 01:30:00', 0)" + utc, "select ts from t where id = 5", "2023-11-05 05:30:00\n"},
		{setup, "select id from t where ts < '2023-11-05 01:30:00' order by id", "3\n"},
		{setup, "select id from t where ts >= '2023-11-05 01:30:00' and ts < '2023-11-05 02:00:00' order by id", "1\n2\n"},
		{setup, "select id from t where ts in ('2023-11-05 01:30:00', '2023-11-05 02:30:00') order by id", "1\n2\n4\n"},
		{setup, "select id from t where ts > '2023-03-12 02:30:00' order by id", "1\n2\n3\n4\n"},
		{setup + "; alter table t add w int default 7, drop index ts; create index i on t (ts, v); alter table t modify v bigint; delete from t where id = 2" + utc, "select id, ts from t order by id", "1 | 2023-11-05 05:30:00\n3 | 2023-11-05 04:30:00\n4 | 2023-11-05 07:30:00\n"},
		{"create table n (ts timestamp, v int); set time_zone = '+00:00'; insert into n values ('2023-11-05 05:30:00', 1), ('2023-11-05 06:30:00', 2); set time_zone = 'America/New_York'; update n set v = 3 where v = 2; delete from n where v = 1" + utc, "select * from n", "2023-11-05 06:30:00 | 3\n"},
	} {
		s.test(t)
	}
	c := shows{setup: setup}.client(t)
	for _, q := range []string{"insert into t values (6, '2023-03-12 02:30:00', 0)", "update t set ts = '2023-03-12 02:30:00'", "insert into t values (6, '2038-01-19 00:00:00', 0)"} {
		c.wantCode(q, 1292, "22007")
	}
	c.exec("create table k (ts timestamp primary key)")
	c.wantCode("insert into k values ('2023-03-12 02:30:00')", 1292, "22007")
	c.wantCode("set time_zone = 'Mars/Olympus'", 1298, "HY000")
}
