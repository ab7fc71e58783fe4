package sql

import (
	"fmt"
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
	for _, q := range []string{"START TRANSACTION READ ONLY", "START TRANSACTION READ WRITE", "SAVEPOINT b", "ROLLBACK TO b", "RELEASE SAVEPOINT b", "COMMIT"} {
		for range 3 {
			p.run(q)
		}
		if done := p.run(q); done != (q != "START TRANSACTION READ WRITE" && q != "RELEASE SAVEPOINT b") {
			t.Errorf("%s: compiled %v", q, done)
		}
	}
}

// Savepoints are set, released and gone back to compiled as they are planned.
func TestCompiledSavepoints(t *testing.T) {
	p := newPair(t)
	p.create()
	for i := range 3 { // the first execution of most texts is planned
		p.run("SELECT * FROM nosuch")
		for _, q := range []string{
			"SAVEPOINT a", "SHOW WARNINGS", "SELECT FOUND_ROWS(), ROW_COUNT()", "ROLLBACK TO a", "RELEASE SAVEPOINT a",
			"BEGIN", "SAVEPOINT a", "SELECT FOUND_ROWS(), ROW_COUNT()", fmt.Sprintf("UPDATE t SET k = %d WHERE id = 5", i), "SAVEPOINT s140_x1", "UPDATE t SET k = 99 WHERE id = 6", "ROLLBACK TO SAVEPOINT s140_x1",
			"SELECT k FROM t WHERE id IN (5, 6)", "RELEASE SAVEPOINT s140_x1", "ROLLBACK TO SAVEPOINT s140_x1", "ROLLBACK TO SAVEPOINT `s140_x1`", "UPDATE t SET k = 98 WHERE id = 7", "SAVEPOINT `b c`", "savepoint A_1", "ROLLBACK TO a", "RELEASE SAVEPOINT `A_1`",
			"SELECT k FROM t WHERE id IN (5, 6, 7)", "SAVEPOINT a_1", "RELEASE SAVEPOINT A_1", "RELEASE SAVEPOINT a_1", "COMMIT", "SELECT k FROM t WHERE id IN (5, 6, 7)",
			"SET autocommit = 0", "SAVEPOINT a_2", "UPDATE t SET k = 97 WHERE id = 7", "ROLLBACK TO SAVEPOINT a_2", "COMMIT", "SET autocommit = 1",
			"SAVEPOINT 1_a", "SAVEPOINT a_1 b", "SAVEPOINT _utf8mb4", "SAVEPOINT ``", "SAVEPOINT a_1;",
		} {
			p.run(q)
		}
	}
	p.same("t")
	p.run("BEGIN")
	for i, q := range []string{"SAVEPOINT s140_x%d", "SAVEPOINT `7f3a-sp-%d`", "ROLLBACK TO SAVEPOINT s140_x%d", "RELEASE SAVEPOINT s140_x%d"} {
		if q = fmt.Sprintf(q, 7); !p.run(q) {
			t.Errorf("%d: not compiled: %s", i, q)
		}
	}
	p.run("ROLLBACK")
}

// Variables of the session are set compiled as they are planned.
func TestCompiledSet(t *testing.T) {
	p := newPair(t)
	p.create()
	shown := "SELECT @@autocommit, @@sql_mode, @@time_zone, @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection, @@transaction_isolation, @@transaction_read_only, @@wait_timeout, @a, @b"
	all := []string{
		"SET autocommit = 0", "SELECT k FROM t WHERE id = 1", "SET autocommit = 1", "SET AUTOCOMMIT=OFF", "SET AUTOCOMMIT=ON", "SET NAMES utf8mb4", "SET NAMES latin1", "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'",
		"SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET character_set_results = NULL", "SET character_set_results = utf8mb4", "SET sql_mode = 'STRICT_TRANS_TABLES'", "SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), @@SESSION.sql_auto_is_null = 0",
		"SET SESSION sql_mode = ''", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET SESSION TRANSACTION READ ONLY", "UPDATE t SET k = 1 WHERE id = 1", "SET SESSION TRANSACTION READ WRITE",
		"SET time_zone = '+02:00'", "SET time_zone = 'SYSTEM'", "SET @a = 1", "SET @a = 'x', @b = 1.5", "SET @a := NULL", "SET wait_timeout = 100, @b = 2", "SET unique_checks = 0", "SET foreign_key_checks = 0", "SET foreign_key_checks = 1", "SET sql_notes = 0", "SET sql_notes = 1",
		"SELECT * FROM nosuch", "SET @a = 3",
	}
	for range 3 { // the first execution is planned, the second keeps the plan
		for _, q := range all {
			p.run(q)
			for _, seen := range []string{"SHOW WARNINGS", "SELECT FOUND_ROWS(), ROW_COUNT()", shown} {
				p.run(seen)
			}
		}
	}
	for _, q := range []string{
		"SET autocommit = 1", "SET NAMES utf8mb4", "SET sql_mode = 'STRICT_TRANS_TABLES'", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET time_zone = '+00:00'", "SET @a = 7", "SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
		"SET character_set_results = NULL",
	} {
		p.run(q) // it may change the settings, of which each has other texts
		p.must(q)
	}
	for _, q := range []string{ // these fail, or are left to go-mysql-server
		"SET sql_mode = 'NONE'", "SET time_zone = 'nowhere'", "SET autocommit = 1, time_zone = 'nowhere'", "SET nosuch = 1", "SET GLOBAL max_error_count = 64", "SET SESSION wait_timeout = DEFAULT", "SET CHARACTER SET utf8mb4", "SET @a = (SELECT MAX(id) FROM t)", "SET @a = @b",
		"SET @a = @a + 1", "SET NAMES nosuch", "SET NAMES utf8mb4 COLLATE latin1_swedish_ci", "SET max_connections = 5", "SET SESSION wait_timeout = 'x'", "SET PASSWORD = 'x'", "SET TRANSACTION READ ONLY",
	} {
		for range 3 {
			if p.run(q) {
				t.Errorf("compiled: %s", q)
			}
			p.run("SHOW WARNINGS")
			p.run(shown)
		}
	}
	for i := range 40 { // more literals than plans are kept of
		p.run(fmt.Sprintf("SET @a = %d", i))
		p.run(shown)
	}
}

// A SET ends a transaction that it finds open as it does planned.
func TestCompiledSetCommits(t *testing.T) {
	p := newPair(t)
	p.create()
	for i := range 3 {
		for _, q := range []string{"SET autocommit = 0", fmt.Sprintf("UPDATE t SET k = %d WHERE id = 5", i), "SET autocommit = 1", "ROLLBACK", "SELECT k FROM t WHERE id = 5", "BEGIN", "UPDATE t SET k = 50 WHERE id = 5", "SET @a = 1", "SET autocommit = 1", "ROLLBACK", "SELECT k FROM t WHERE id = 5"} {
			p.run(q)
			if got, want := p.compiled.s.Explicit(), p.gms.s.Explicit(); got != want {
				t.Errorf("%s: a transaction is open: %v, want %v", q, got, want)
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
