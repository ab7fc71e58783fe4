package sql

import "testing"

// TestBareSubqueries: a subquery in further parentheses is still a subquery, not a single value.
func TestBareSubqueries(t *testing.T) {
	const three = "create table t (id int primary key, a int); insert into t values (1,1),(2,2),(3,null);"
	for _, s := range []shows{
		{three, "select id from t where a in ((select a from t))", "1\n2\n"},
		{three, "select id from t where a not in ( ( (select a from t where id = 1)) )", "2\n"},
		{three, "select id from t where a = any ((select a from t))", "1\n2\n"},
		{three, "select id from t where a <> all ((select 1))", "2\n"},
		{three, "select id from t where a in ((select 1), (select 2))", "1\n2\n"},
		{three, "select id from t where a = ((select 1))", "1\n"},
		{three, "select id from t where a < any ((select 1))", "error 1235"},
	} {
		s.test(t)
	}
}

// TestViewsElsewhere: CREATE VIEW of a view in another database, or without a current one.
func TestViewsElsewhere(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("create database p")
	c.exec("create table p.t (a int)")
	c.exec("insert into p.t values (1)")
	c.exec("create view p.v as select * from p.t")
	c.wantCode("create view p.w as select * from t", 1046, "3D000")
	c.exec("create database x")
	c.exec("use x")
	c.exec("create table t (b int)")
	c.exec("insert into t values (2)")
	c.exec("create view p.w as with c as (select b from t) select y.b, t.b + 1 as d, u.a from c y join t on y.b = t.b join p.t u")
	for query, want := range map[string]string{"select * from p.v": "1\n", "select * from p.w": "2 | 3 | 1\n"} {
		if got := c.shown(query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}
