package sql

import "testing"

// TestViewWithoutDatabase: clients without a current database can read a view, and have none
// afterwards.
func TestViewWithoutDatabase(t *testing.T) {
	i := newInstance(t)
	c := i.client("")
	for _, q := range []string{"create database d", "create table d.t (id int primary key, v int)", "insert into d.t values (1, 10), (2, 20)",
		"create database e", "create table e.u (id int primary key)", "insert into e.u values (2)"} {
		c.exec(q)
	}
	in := i.client("d")
	in.exec("create view v as select id, v from t")
	in.exec("create view w as select v.v, u.id from v join e.u on u.id = v.id")
	for range 2 {
		for _, q := range []struct{ query, want string }{
			{"select * from d.v where id = 1", "1 | 10\n"},
			{"select * from d.w", "20 | 2\n"},
			{"select (select max(v) from d.v), database()", "20 | NULL\n"},
			{"select a.v from d.v a join d.v b on a.id = b.id order by a.id limit 1", "10\n"},
		} {
			if got := c.shown(q.query); got != q.want {
				t.Errorf("%s: got %q, want %q", q.query, got, q.want)
			}
		}
		c.wantCode("select * from t", 1046, "3D000")
		c.wantCode("select nothing from d.v", 1054, "42S22")
		c.wantCode("select * from t", 1046, "3D000")
	}
}
