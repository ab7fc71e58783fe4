package routine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/sql/sqltest"
)

// A body is called, with what it shows: rows, or an error's number.
var bodies = []struct{ name, body, want string }{
	{"exit handler with rows", "declare exit handler for sqlexception select 'dup'; insert into k values (1,1); select 'on'", "dup\n"},
	{"continue handler with rows", "declare continue handler for sqlexception select 'dup'; insert into k values (1,1); insert into k values (4,1)", "dup\n"},
	{"continue handler", "declare x int default 0; declare continue handler for sqlexception set x = x + 5; insert into k values (1,1); insert into k values (2,1); select x", "10\n"},
	{"state", "declare exit handler for sqlstate '23000' select 'dup'; insert into k values (1,1)", "dup\n"},
	{"another state", "declare exit handler for sqlstate '42S02' select 'none'; insert into k values (1,1)", "error 1062"},
	{"number", "declare exit handler for 1062 select 'dup'; insert into k values (1,1)", "dup\n"},
	{"another number", "declare exit handler for 1146 select 'none'; insert into k values (1,1)", "error 1062"},
	{"named state", "declare dup condition for sqlstate '23000'; declare exit handler for dup select 'dup'; insert into k values (1,1)", "dup\n"},
	{"named number", "declare dup condition for 1062; declare exit handler for dup select 'dup'; insert into k values (1,1)", "dup\n"},
	{"a table to drop", "declare exit handler for 1051 select 'none'; drop table absent", "none\n"},
	{"a view to drop", "declare exit handler for 1051 select 'none'; drop view absent", "none\n"},
	{"a table to read", "declare exit handler for 1146 select 'none'; select * from absent", "none\n"},
	{"a variable", "declare exit handler for 1193 select 'none'; set @@absent = 1", "none\n"},
	{"a table to drop, of which nobody hears", "drop table absent", "error 1051"},
	{"several", "declare exit handler for 1146, not found, sqlstate '23000' select 'any'; insert into k values (1,1)", "any\n"},
	{"the more precise", "declare exit handler for sqlexception select 'any'; declare exit handler for 1062 select 'number'; declare exit handler for sqlstate '23000' select 'state'; insert into k values (1,1)", "number\n"},
	{"the inner one", "declare exit handler for sqlexception select 'outer'; begin declare exit handler for sqlexception select 'inner'; insert into k values (1,1); end", "inner\n"},
	{"after the inner block", "declare x int default 0; begin declare exit handler for sqlexception set x = 1; insert into k values (1,1); set x = 100; end; set x = x + 10; select x", "11\n"},
	{"the outer one exits", "declare x int default 0; begin declare exit handler for sqlexception set x = 1; begin insert into k values (1,1); set x = 50; end; set x = 100; end; select x", "1\n"},
	{"block of a handler", "declare exit handler for sqlexception begin declare y int default 3; set y = y + 1; select y; end; insert into k values (1,1)", "4\n"},
	{"handler that fails", "declare exit handler for sqlexception select 'outer'; begin declare exit handler for sqlexception insert into nowhere values (1); insert into k values (1,1); end", "outer\n"},
	{"handler that fails by itself", "declare exit handler for sqlexception insert into k values (1,1); insert into k values (1,1)", "error 1062"},
	{"rollback", "declare exit handler for sqlexception begin rollback; select count(*) from k; end; start transaction; insert into k values (9,9); insert into k values (1,1); commit", "3\n"},
	{"cursor", "declare done int default 0; declare v int; declare c cursor for select a from k order by a; declare continue handler for not found set done = 1; open c; l: loop fetch c into v; if done then leave l; end if; update k set b = b + 10 where a = v; end loop; close c; select sum(b) from k", "36\n"},
	{"cursor without handler", "declare v int; declare c cursor for select a from k where a > 100; open c; fetch c into v", "error 1329"},
	{"cursor ends the block", "declare n int default 0; declare v int; declare c cursor for select a from k; begin declare exit handler for sqlstate '02000' begin end; open c; while true do fetch c into v; set n = n + v; end while; end; select n", "6\n"},
	{"cursor twice", "declare c cursor for select a from k; open c; open c", "error 1325"},
	{"into without row", "declare v int default 7; select a into v from k where a = 100; select v", "7\n"},
	{"into without row, handled", "declare v int; declare exit handler for not found select 'none'; select a into v from k where a = 100", "none\n"},
	{"into with rows", "declare v int; select a into v from k", "error 1172"},
	{"into @", "declare v int; select a, b into v, @w from k where a = 2; select v, @w", "2 | 2\n"},
	{"default", "declare v int; select v", "NULL\n"},
	{"set of several", "declare x, y int; set x = 1, y = 2; select x + y", "3\n"},
	{"float", "declare f float default 1.5; set f = 2; select f + 1", "3\n"},
	{"decimal", "declare d decimal(10,2) default 1.10; select d + 0.10, d", "1.20 | 1.10\n"},
	{"date", "declare d datetime default '2026-01-02 03:04:05'; select date_add(d, interval 1 day), d", "2026-01-03 03:04:05 | 2026-01-02 03:04:05\n"},
	{"bytes", "declare d varbinary(10) default x'ff00'; select hex(d)", "FF00\n"},
	{"order by a variable", "declare a int default 1; select k.a from k order by a", "1\n2\n3\n"},
	{"update by variables", "declare v int default 40; update k set b = v where a = v - 38; select b from k where k.a = 2", "40\n"},
	{"signal", "declare exit handler for sqlstate '45000' select 'signalled'; signal sqlstate '45000' set message_text = 'no'", "signalled\n"},
	{"signal not found", "declare exit handler for not found select 'nf'; signal sqlstate '02000'", "nf\n"},
	{"signal a warning", "signal sqlstate '01000'; select 'on'", "on\n"},
	{"signal a warning, handled", "declare exit handler for sqlwarning select 'warned'; signal sqlstate '01000'; select 'on'", "warned\n"},
	{"signal a number", "declare dup condition for 1062; signal dup", "error 1646"},
	{"signal a variable", "declare m varchar(20) default 'of a variable'; signal sqlstate '45000' set message_text = m, mysql_errno = 5000", "error 5000"},
	{"signal a number beyond SMALLINT", "signal sqlstate '45000' set mysql_errno = 45001", "error 45001"},
	{"resignal", "declare exit handler for sqlexception begin set @seen = 1; resignal; end; insert into k values (1,1)", "error 1062"},
	{"resignal another", "declare exit handler for sqlexception resignal set mysql_errno = 5001; insert into k values (1,1)", "error 5001"},
	{"resignal without", "resignal", "error 1645"},
	{"case", "declare x int default 2; case x when 1 then select 'one'; when 2 then select 'two'; else select 'many'; end case", "two\n"},
	{"case without else", "declare x int default 3; case x when 1 then select 'one'; end case", "error 1339"},
	{"repeat", "declare x int default 0; repeat set x = x + 1; until x >= 3 end repeat; select x", "3\n"},
	{"iterate", "declare x, y int default 0; l: while x < 5 do set x = x + 1; if x = 2 then iterate l; end if; set y = y + x; end while; select y", "13\n"},
	{"leave a block", "l: begin select 'here'; leave l; select 'not here'; end", "here\n"},
	{"error in a condition", "declare continue handler for sqlexception begin end; if (select a from k) then select 'then'; else select 'else'; end if; select 'after'", "after\n"},
	{"error in a loop", "declare n int default 0; declare continue handler for 1062 set n = n + 1; while n < 3 do insert into k values (1,1); end while; select n", "3\n"},
	{"out parameters", "declare x int default 1; call twice(x); call twice(x); select x", "4\n"},
	{"out parameters beside a trigger's", "declare x int default 1; set @seen = 5; call noted(x); select x, @seen", "2 | 10\n"},
	{"recursion", "declare x int; call faculty(5, x); select x", "120\n"},
	{"error of a procedure", "declare exit handler for 1062 select 'dup'; call duplicate()", "dup\n"},
}

// TestBodies: go-mysql-server's interpreter hangs on most handlers, and begins with the
// wrong one.
func TestBodies(t *testing.T) {
	for _, tc := range bodies {
		t.Run(tc.name, func(t *testing.T) {
			c := sqltest.New(t,
				"create table k (a int primary key, b int)", "insert into k values (1,1),(2,2),(3,3)",
				"set max_sp_recursion_depth = 20",
				"create procedure twice(inout x int) set x = 2 * x",
				"create procedure faculty(n int, out f int) begin declare m int; if n = 0 then set f = 1; else call faculty(n - 1, m); set f = n * m; end if; end",
				"create procedure duplicate() insert into k values (1,1)",
				"create table noting (x int)", "create trigger g after insert on noting for each row call twice(@seen)",
				"create procedure noted(inout x int) begin set x = x + 1; insert into noting values (x); end",
				"create procedure p() "+wrapped(tc.body))
			for range 2 {
				c.Exec("delete from k", "insert into k values (1,1),(2,2),(3,3)")
				if got := c.Result("call p()"); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
		})
	}
}

// wrapped is a body as a block, unless it is a block with a label.
func wrapped(body string) string {
	if strings.HasPrefix(body, "l: begin") {
		return body
	}
	return "begin " + body + "; end"
}

// A handler does not keep a body running once its statement has been killed, as happens when the
// client is gone.
func TestBodyEndsWithItsStatement(t *testing.T) {
	db := sqltest.Open(t)
	c := db.Client()
	c.Exec("create database d", "use d", "create table k (a int primary key)", "insert into k values (1)",
		"create procedure p() begin declare continue handler for sqlexception begin end; while true do insert into k values (1); end while; end")
	id := strings.TrimSpace(c.Result("select connection_id()"))
	done := make(chan string, 1)
	go func() { done <- c.Result("call p()") }()
	time.Sleep(200 * time.Millisecond)
	db.Client().Exec("kill query " + id)
	select {
	case got := <-done:
		if got != "error 1317" {
			t.Errorf("the procedure has ended with %q", got)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("hangs")
	}
}
