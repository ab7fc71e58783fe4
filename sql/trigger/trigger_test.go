package trigger_test

import (
	"testing"

	"github.com/farmsql/farmsql/sql/sqltest"
)

// logged is a table, one that triggers write to, and triggers for each event.
const logged = "create table t (id int primary key, u int unique, v int); create table log (n int auto_increment primary key, what varchar(40));" +
	"insert into t values (1,1,1),(2,2,2);" +
	"create trigger bi before insert on t for each row insert into log (what) values (concat('bi ', new.id, ' ', new.v));" +
	"create trigger ai after insert on t for each row insert into log (what) values (concat('ai ', new.id, ' ', new.v));" +
	"create trigger bu before update on t for each row insert into log (what) values (concat('bu ', old.v, ' ', new.v));" +
	"create trigger au after update on t for each row insert into log (what) values (concat('au ', old.v, ' ', new.v));" +
	"create trigger bd before delete on t for each row insert into log (what) values (concat('bd ', old.id));" +
	"create trigger ad after delete on t for each row insert into log (what) values (concat('ad ', old.id));"

// TestTriggersOfUpserts: for INSERT ... ON DUPLICATE KEY UPDATE no UPDATE trigger ran, and AFTER
// INSERT ran with the row as it was before; for REPLACE no DELETE trigger ran, and no AFTER INSERT.
func TestTriggersOfUpserts(t *testing.T) {
	const log = "select what from log order by n"
	for _, s := range []struct{ setup, query, want string }{
		{logged + "insert into t values (1,1,5) on duplicate key update v = values(v)", log, "bi 1 5\nbu 1 5\nau 1 5\n"},
		{logged + "insert into t values (3,3,3),(1,9,5),(2,9,6) on duplicate key update v = v + values(v)", log, "bi 3 3\nai 3 3\nbi 1 5\nbu 1 6\nau 1 6\nbi 2 6\nbu 2 8\nau 2 8\n"},
		{logged + "insert into t select id + 1, u + 2, v from t order by id on duplicate key update v = 7", log, "bi 2 1\nbu 2 7\nau 2 7\nbi 3 2\nai 3 2\n"},
		{"create table t (id int primary key, v int); insert into t values (1,1),(2,2); insert into t select id + 1, v from t on duplicate key update v = 7", "select * from t order by id", "1 | 1\n2 | 7\n3 | 2\n"},
		{"create table t (id int primary key, v int); insert into t values (1,1),(2,2); replace into t select id + 1, v + 5 from t where v < 7", "select * from t order by id", "1 | 1\n2 | 6\n3 | 7\n"},
		{logged + "insert ignore into t values (1,1,5) on duplicate key update v = 9", log, "bi 1 5\nbu 1 9\nau 1 9\n"},
		{logged + "replace into t values (1,2,5)", log, "bi 1 5\nbd 1\nad 1\nbd 2\nad 2\nai 1 5\n"},
		{logged + "replace into t values (3,3,3),(2,2,9)", log, "bi 3 3\nai 3 3\nbi 2 9\nbd 2\nad 2\nai 2 9\n"},
		{logged + "replace into t set id = 1, v = 4", "select * from t order by id", "1 | NULL | 4\n2 | 2 | 2\n"},
		{logged + "drop trigger bu; create trigger bu before update on t for each row set new.v = new.v * 10; insert into t values (1,1,5) on duplicate key update v = 6", "select * from t order by id", "1 | 1 | 60\n2 | 2 | 2\n"},
		{logged + "create trigger bu2 before update on t for each row set new.u = 40, new.v = new.v + new.u; insert into t values (1,1,5) on duplicate key update v = 6", "select what from log where what like 'a%'", "au 1 46\n"},
		{logged + "drop trigger ai; create trigger ai after insert on t for each row insert into log values (1, 'twice'); insert into log values (1, 'once')", "insert into t values (3,3,3) on duplicate key update v = 9", "error 1062"},
		{logged + "drop trigger ad; create trigger ad after delete on t for each row insert into log values (1, 'twice')", "replace into t values (1,1,3)", "error 1062"},
		{logged + "drop trigger au; create trigger au after update on t for each row insert into nowhere values (1)", "insert into t values (1,1,3) on duplicate key update v = 9", "error 1146"},
		{logged + "create trigger big before insert on log for each row replace into t values (1,1,1)", "insert into t values (1,1,3) on duplicate key update v = 9", "error 1442"},
		{logged + "create table o (a int primary key); create trigger o after insert on o for each row replace into t values (new.a, new.a, 8); insert into o values (2)", log, "bi 2 8\nbd 2\nad 2\nai 2 8\n"},
		{logged + "create procedure p() insert into t values (1,1,5) on duplicate key update v = 8; call p()", log, "bi 1 5\nbu 1 8\nau 1 8\n"},
		{logged + "alter table t add check (v < 50); create trigger bu2 before update on t for each row set new.v = new.v * 10", "insert into t values (1,1,1) on duplicate key update v = 6", "error 3819"},
		{logged + "alter table t add check (v < 50); create trigger bu2 before update on t for each row set new.v = 3; insert into t values (1,1,1) on duplicate key update v = 60", "select v from t where id = 1", "3\n"},
		{logged + "create table c (id int primary key, t int, foreign key (t) references t (id) on delete cascade); insert into c values (1,1); replace into t values (1,1,7)", log, "bi 1 7\nbd 1\nad 1\nai 1 7\n"},
	} {
		sqltest.Check(t, s.setup, s.query, s.want)
	}
}

// TestTriggersOfOneTable: in a compound statement, the triggers of one table ran for all.
func TestTriggersOfOneTable(t *testing.T) {
	for _, s := range []struct{ body, want string }{
		{"begin if new.a = 1 then insert into p values (1); else insert into t values (new.a, 8, 8); end if; end", ""},
		{"begin if new.a = 1 then update t set v = 9 where id = 1; delete from t where id = 2; else delete from t; end if; end", "bu 1 9\nau 1 9\nbd 2\nad 2\n"},
		{"begin replace into t values (1,1,3); if new.a = 1 then delete from t where id = 2; end if; end", "bi 1 3\nbd 1\nad 1\nai 1 3\nbd 2\nad 2\n"},
	} {
		c := sqltest.New(t, sqltest.Statements(logged+"create table o (a int primary key); create table p (a int)")...)
		c.Exec("create trigger o after insert on o for each row "+s.body, "insert into o values (1)")
		if got := c.Result("select what from log order by n"); got != s.want {
			t.Errorf("%s: got %q, want %q", s.body, got, s.want)
		}
	}
}

// TestGeneratedAfterTriggers: generated columns were computed before BEFORE triggers ran.
func TestGeneratedAfterTriggers(t *testing.T) {
	const setup = "create table t (id int primary key, a int, s int as (a + 1) stored, v int as (s * 10), key (s), key (v), check (s < 100)); create table log (n int auto_increment primary key, what varchar(40));" +
		"create trigger bi before insert on t for each row set new.a = new.a * 2; create trigger bu before update on t for each row set new.a = new.a * 3;" +
		"create trigger ai after insert on t for each row insert into log (what) values (concat('ai ', new.s, ' ', new.v)); create trigger au after update on t for each row insert into log (what) values (concat('au ', old.s, ' ', new.s));" +
		"insert into t (id, a) values (1, 1);"
	for _, s := range []struct{ setup, query, want string }{
		{setup, "select * from t where s = 3", "1 | 2 | 3 | 30\n"},
		{setup + "insert into t (id, a) select id + 1, a from t", "select * from t where v = 50", "2 | 4 | 5 | 50\n"},
		{setup + "update t set a = 5", "select * from t where s = 16", "1 | 15 | 16 | 160\n"},
		{setup + "update t set a = 5", "select what from log order by n", "ai 3 30\nau 3 16\n"},
		{setup + "insert into t (id, a) values (1, 1) on duplicate key update a = 6", "select * from t where v = 190", "1 | 18 | 19 | 190\n"},
		{setup + "replace into t (id, a) values (1, 4)", "select * from t where s = 9", "1 | 8 | 9 | 90\n"},
		{setup, "insert into t (id, a) values (2, 60)", "error 3819"},
		{setup, "update t set a = 40", "error 3819"},
		{setup, "insert into t (id, a) values (1, 1) on duplicate key update a = 40", "error 3819"},
		{setup + "create table u (id int primary key, b int); insert into u values (1, 7); update t join u on t.id = u.id set t.a = u.b, u.b = 8", "select t.*, u.b from t join u using (id)", "1 | 21 | 22 | 220 | 8\n"},
		{setup + "create table u (id int primary key); create trigger u after insert on u for each row insert into t (id, a) values (new.id, 5); insert into u values (7)", "select * from t where id = 7", "7 | 10 | 11 | 110\n"},
		{setup + "create table u (id int primary key); create trigger u after insert on u for each row update t set a = 9; insert into u values (7)", "select * from t", "1 | 27 | 28 | 280\n"},
	} {
		sqltest.Check(t, s.setup, s.query, s.want)
	}
}

// TestTriggersOfJoinedDeletes: they were refused.
func TestTriggersOfJoinedDeletes(t *testing.T) {
	const setup = logged + "create table m (id int primary key, t int); insert into m values (1,1),(2,1),(3,7);" +
		"create trigger m after delete on m for each row insert into log (what) values (concat('m ', old.id));"
	const log = "select what from log order by n"
	for _, s := range []struct{ setup, query, want string }{
		{setup + "delete t from t join m on m.t = t.id", log, "bd 1\nad 1\n"},
		{setup + "delete x, m from t x join m on m.t = x.id", log, "bd 1\nad 1\nm 1\nm 2\n"},
		{setup + "delete x, m from t x join m on m.t = x.id", "select (select count(*) from t), (select count(*) from m)", "1 | 1\n"},
		{setup + "delete from t, m using m left join t on m.t = t.id where m.id > 1", log, "m 2\nm 3\nbd 1\nad 1\n"},
		{setup + "delete t from t where id = 2", log, "bd 2\nad 2\n"},
		{setup + "drop trigger ad; create trigger ad after delete on t for each row insert into nowhere values (1)", "delete t from t join m on m.t = t.id", "error 1146"},
		{setup + "drop trigger m; create trigger m after delete on m for each row delete t from t where t.id = old.t; delete m from m where id = 1", log, "bd 1\nad 1\n"},
	} {
		sqltest.Check(t, s.setup, s.query, s.want)
	}
}

// TestLoneStatementsOfTriggers: SIGNAL, and compound statements, were not taken for a body.
func TestLoneStatementsOfTriggers(t *testing.T) {
	for _, s := range []struct{ body, query, want string }{
		{"signal sqlstate '45000' set message_text = 'no'", "insert into t values (1)", "error 1644"},
		{"signal sqlstate '45000' set message_text = 'no' ; ", "insert into t values (1)", "error 1644"},
		{"follows f signal sqlstate '45000'", "insert into t values (1)", "error 1644"},
		{"if new.a > 5 then set new.a = 5; else set new.a = new.a + 1; end if", "select * from t", "2\n5\n"},
		{"case when new.a > 5 then set new.a = 6; else set new.a = 7; end case;", "select * from t", "7\n6\n"},
	} {
		c := sqltest.New(t, "create table t (a int)", "create trigger f before insert on t for each row set @x = 1", "create trigger g before insert on t for each row "+s.body)
		if s.want != "error 1644" {
			c.Exec("insert into t values (1), (9)")
		}
		if got := c.Result(s.query); got != s.want {
			t.Errorf("%s: %s: got %q, want %q", s.body, s.query, got, s.want)
		}
	}
}

// TestTriggersOutsideOfTheCurrentDatabase: triggers were looked for in the current database, and
// without one a DELETE failed that could be a TRUNCATE.
func TestTriggersOutsideOfTheCurrentDatabase(t *testing.T) {
	for _, use := range []string{"", "create database o", "create database o; create table o.t (id int primary key, u int, v int)"} {
		for _, s := range []struct{ query, want string }{
			{"delete from d.t", "bd 1\nad 1\nbd 2\nad 2\n"},
			{"delete from d.t where id = 1", "bd 1\nad 1\n"},
			{"delete x from d.t x join d.t y on x.id = y.id + 1", "bd 2\nad 2\n"},
			{"insert into d.t values (1,1,5) on duplicate key update v = 7", "bi 1 5\nbu 1 7\nau 1 7\n"},
			{"insert into d.t values (3,3,5)", "bi 3 5\nai 3 5\n"},
			{"replace into d.t values (1,1,5)", "bi 1 5\nbd 1\nad 1\nai 1 5\n"},
			{"update d.t set v = 9 where id = 1", "bu 1 9\nau 1 9\n"},
			{"update d.t x join d.t y on x.id = y.id + 1 set x.v = 9", "bu 2 9\nau 2 9\n"},
		} {
			db := sqltest.Open(t)
			db.Client().Exec(sqltest.Statements("create database d; use d; " + logged)...)
			c := db.Client()
			if use != "" {
				c.Exec(sqltest.Statements(use + "; use o")...)
			}
			c.Exec(s.query)
			if got := c.Result("select what from d.log order by n"); got != s.want {
				t.Errorf("%s: %s: got %q, want %q", use, s.query, got, s.want)
			}
		}
	}
}
