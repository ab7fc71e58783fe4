package test

import (
	stdsql "database/sql"
	"testing"
)

// NULL as a parameter of LIMIT is 0, as in MariaDB.
func TestLimitsThatAreNull(t *testing.T) {
	db := start(t, t.TempDir()).open(t, "d")
	for _, q := range []string{"create table t (a int primary key)", "insert into t values (1), (2), (3)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []struct {
		query string
		args  []any
		want  string
	}{
		{"select group_concat(a) from (select a from t order by a limit ?) d", []any{nil}, "NULL"},
		{"select group_concat(a) from (select a from t order by a limit ?, ?) d", []any{nil, 2}, "1,2"},
		{"select group_concat(a) from (select a from t order by a limit ? offset ?) d", []any{1, nil}, "1"},
		{"select group_concat(a) from (select a from t union select 9 order by a limit ?) d", []any{nil}, "NULL"},
		{"select group_concat(a) from (select a from t union select 9 order by a limit ?, ?) d", []any{nil, 2}, "1,2"},
	} {
		for range 3 {
			var got stdsql.NullString
			if err := db.QueryRow(s.query, s.args...).Scan(&got); err != nil || got.Valid != (s.want != "NULL") || got.Valid && got.String != s.want {
				t.Errorf("%s: %v (%v), want %s", s.query, got, err, s.want)
			}
		}
	}
	for _, change := range []string{"delete from t limit ?", "update t set a = a + 10 limit ?"} {
		r, err := db.Exec(change, nil)
		if err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		if n, _ := r.RowsAffected(); n != 0 {
			t.Errorf("%s with NULL changed %d rows", change, n)
		}
	}
}
