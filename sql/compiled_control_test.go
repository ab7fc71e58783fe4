package sql

import (
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
)

// Transactions begin and end compiled as they do planned.
func TestCompiledControl(t *testing.T) {
	p := newPair(t)
	p.create()
	p.must("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "begin", "ROLLBACK", "COMMIT", "rollback", "start  transaction", "Commit", "BEGIN WORK", "COMMIT WORK")
	for _, q := range []string{
		"BEGIN", "UPDATE t SET k = 50 WHERE id = 5", "SELECT k FROM t WHERE id = 5", "ROLLBACK", "SELECT k FROM t WHERE id = 5", "BEGIN", "UPDATE t SET k = 51 WHERE id = 5", "BEGIN", "ROLLBACK", "SELECT k FROM t WHERE id = 5",
		"BEGIN", "UPDATE t SET k = 52 WHERE id = 5", "COMMIT", "ROLLBACK", "SELECT k FROM t WHERE id = 5", "SET autocommit = 0", "UPDATE t SET k = 53 WHERE id = 5", "ROLLBACK", "UPDATE t SET k = 54 WHERE id = 6", "COMMIT", "COMMIT", "BEGIN",
		"UPDATE t SET k = 55 WHERE id = 7", "SET autocommit = 1", "SELECT k FROM t WHERE id = 7", "COMMIT", "SELECT k FROM t WHERE id = 7", "START TRANSACTION READ ONLY", "UPDATE t SET k = 1 WHERE id = 5", "COMMIT", "START TRANSACTION READ ONLY", "START TRANSACTION", "UPDATE t SET k = 2 WHERE id = 5", "COMMIT",
		"SELECT * FROM nosuch", "SHOW WARNINGS", "BEGIN", "SHOW WARNINGS", "SAVEPOINT a", "UPDATE t SET k = 3 WHERE id = 5", "ROLLBACK TO a", "COMMIT", "RELEASE SAVEPOINT a", "SELECT FOUND_ROWS(), ROW_COUNT()", "BEGIN", "SELECT FOUND_ROWS(), ROW_COUNT()", "SELECT k FROM t WHERE id IN (1, 2, 3)", "COMMIT", "SELECT FOUND_ROWS(), ROW_COUNT()",
		"BEGIN", "CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)", "ROLLBACK", "SELECT * FROM other",
	} {
		p.run(q)
	}
	p.same("t")
	for _, q := range []string{"START TRANSACTION READ ONLY", "START TRANSACTION READ WRITE", "SAVEPOINT b", "ROLLBACK TO b", "COMMIT"} {
		for range 3 {
			if p.run(q) != (q == "COMMIT") {
				t.Errorf("%s: compiled %v", q, q != "COMMIT")
			}
		}
	}
}

// A conflict that a COMMIT finds, and a BEGIN that has to commit, ends the transaction.
func TestCompiledControlConflicts(t *testing.T) {
	in := newInstance(t)
	c, other := in.client("d"), in.client("d")
	c.exec("CREATE DATABASE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, k INT)")
	c.exec("INSERT INTO t VALUES (1, 0)")
	for _, end := range []string{"COMMIT", "BEGIN"} {
		for range 3 {
			c.exec("BEGIN")
			c.exec("UPDATE t SET k = k + 1 WHERE id = 1")
			other.exec("UPDATE t SET k = k + 10 WHERE id = 1")
			_, _, _, err := c.compiled(end)
			if !myerr.IsConflict(err) || c.s.GetTransaction() != nil || c.s.Explicit() {
				t.Fatalf("%s after a conflict: %v", end, err)
			}
		}
	}
	if rows := c.exec("SELECT k FROM t"); rows[0][0] != int32(60) {
		t.Errorf("k = %v", rows[0][0])
	}
}
