package test

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func isDuplicate(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1062
}

// TestForUpdateConflicts: rows read FOR UPDATE count as written. So of two transactions that read
// the same row FOR UPDATE, one must lose, although neither writes it. Two plain readers of the row
// both commit (write skew on other rows).
func TestForUpdateConflicts(t *testing.T) {
	s := start(t, t.TempDir(), layouts[0].flags()...)
	db := s.open(t, "locking")
	exec1(t, db, "create table t (id int primary key, n int)", "insert into t values (1, 0), (2, 0), (3, 0)")
	for _, tc := range []struct {
		read string
		lose bool
	}{
		{"select n from t where id = 1", false},
		{"select n from t where id = 1 for update", true},
		{"select n from t where n = 0 for update", true},
	} {
		one, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		two, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := one.QueryRow(tc.read).Scan(&n); err != nil {
			t.Fatal(err)
		}
		lost := two.QueryRow(tc.read).Scan(&n)
		if lost == nil {
			if err := one.Commit(); err != nil {
				t.Fatalf("%s: the first to commit lost: %v", tc.read, err)
			}
			lost = two.Commit()
		}
		if tc.lose != isConflict(lost) || (!tc.lose && lost != nil) {
			t.Errorf("%s: the second got %v", tc.read, lost)
		}
		_ = one.Rollback()
		_ = two.Rollback()
	}
}
