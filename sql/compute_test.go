package sql

import "testing"

// TestUpsertReadsVirtualColumns: the virtual columns of the existing row were read as NULL, which ON
// DUPLICATE KEY UPDATE then wrote.
func TestUpsertReadsVirtualColumns(t *testing.T) {
	const columns = "a int, g int as (a * 2) stored, v int as (a + 1) virtual);"
	const keyed = "create table t (id int primary key, " + columns + "insert into t (id, a) values (1, 10);"
	const unique = "create table t (id int, unique (id), " + columns + "insert into t (id, a) values (1, 10);"
	for _, setup := range []string{keyed, unique} {
		for _, s := range []shows{
			{setup + "insert into t (id, a) values (1, 5) on duplicate key update a = v", "select * from t", "1 | 11 | 22 | 12\n"},
			{setup + "insert into t (id, a) values (1, 5) on duplicate key update a = values(a) + g + v", "select * from t", "1 | 36 | 72 | 37\n"},
			{setup + "insert into t (id, a) select 1, 5 on duplicate key update a = t.v + 1", "select * from t", "1 | 12 | 24 | 13\n"},
			{setup + "insert into t (id, a) values (1, 5) on duplicate key update a = if(v is null, 0, a)", "select * from t", "1 | 10 | 20 | 11\n"},
			{setup, "insert into t (id, a) values (1, 5) on duplicate key update a = 2, g = 5", "error 3105"},
			{setup, "insert into t (id, a) select 1, 5 on duplicate key update t.v = 5", "error 3105"},
			{setup + "replace into t (id, a) values (1, 5)", "select * from t", "1 | 5 | 10 | 6\n"},
			{setup + "create table log (v int, w int); create trigger bu before update on t for each row insert into log values (old.v, new.v); insert into t (id, a) values (1, 5) on duplicate key update a = 7", "select * from log", "11 | 8\n"},
			{setup + "create table log (v int); create trigger bd before delete on t for each row insert into log values (old.v); replace into t (id, a) values (1, 5)", "select * from log", "11\n"},
		} {
			s.test(t)
		}
	}
}
