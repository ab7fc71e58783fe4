package sql

import "testing"

// TestExecuteInProcedure: the rows of an EXECUTE in a procedure were lost if a statement without rows
// came after it, such as DEALLOCATE PREPARE.
func TestExecuteInProcedure(t *testing.T) {
	for _, s := range []struct{ body, want string }{
		{"set @q = 'select v from t order by id'; prepare s from @q; execute s; deallocate prepare s", "10\n20\n"},
		{"prepare s from 'select v from t where id = ?'; set @a = 2; execute s using @a; deallocate prepare s", "20\n"},
		{"prepare s from 'select v from t where id = ?'; set @a = 7; execute s using @a; deallocate prepare s", ""},
		{"select 1; prepare s from 'select 2'; execute s; deallocate prepare s; insert into t values (3, 30)", "2\n"},
		{"prepare s from 'insert into t values (3, 30)'; execute s; deallocate prepare s; select max(v) from t", "30\n"},
		{"show tables; set @a = 1; delete from t", "t\n"},
	} {
		t.Run(s.body, func(t *testing.T) {
			c := shows{setup: "create table t (id int primary key, v int); insert into t values (1, 10), (2, 20)"}.client(t)
			c.exec("create procedure p() begin " + s.body + "; end")
			if got := c.shown("call p()"); got != s.want {
				t.Errorf("got %q, want %q", got, s.want)
			}
		})
	}
}
