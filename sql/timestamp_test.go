package sql

import "testing"

// TestTimestamp: statements use the time that their session has set.
func TestTimestamp(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"create database d", "use d", "set time_zone = '+00:00'", "create table t (id int primary key, at datetime(6) default current_timestamp(6), up timestamp default current_timestamp on update current_timestamp, v int)"} {
		c.exec(q)
	}
	want := func(query, want string) {
		t.Helper()
		if got := c.shown(query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	c.exec("set timestamp = 1000000000.5")
	for range 3 {
		want("select now(6), unix_timestamp(), @@timestamp, @@session.timestamp, sysdate() > now()", "2001-09-09 01:46:40.500000 | 1000000000 | 1000000000.5 | 1000000000.5 | 1\n")
	}
	c.exec("insert into t (id) values (1)")
	c.exec("create procedure p() insert into t (id) values (2)")
	c.exec("call p()")
	c.exec("set timestamp = 1000000001")
	c.exec("update t set v = 1 where id = 2")
	want("select id, at, up from t", "1 | 2001-09-09 01:46:40.500000 | 2001-09-09 01:46:40\n2 | 2001-09-09 01:46:40.500000 | 2001-09-09 01:46:41\n")
	c.exec("set timestamp = default")
	want("select now() > '2020-01-01', @@timestamp > 1500000000", "1 | 1\n")
	c.exec("set timestamp = 5")
	c.exec("set timestamp = 0")
	want("select now() > '2020-01-01'", "1\n")
	c.wantCode("set global timestamp = 1", 1228, "HY000")
}
