package sql

import "testing"

// What a session knows is read by plans as it is at each execution.
func TestPlannedSession(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, n INT)")
	queries := []string{
		"SELECT @@autocommit", "SELECT @@session.autocommit, @@sql_mode AS mode", "SELECT @@SESSION.transaction_isolation, @@global.max_connections, @@version_comment LIMIT 1",
		"SELECT @@time_zone, @@collation_connection, @@character_set_client", "SELECT @@lower_case_table_names + 1 AS x", "SELECT LAST_INSERT_ID()", "SELECT LAST_INSERT_ID() AS id, CONNECTION_ID() > 0, LENGTH(DATABASE()) AS db", "SELECT FOUND_ROWS()", "SELECT ROW_COUNT()",
		"SELECT id FROM t WHERE id = LAST_INSERT_ID()", "UPDATE t SET n = n + 1 WHERE id = LAST_INSERT_ID()", "SELECT * FROM t WHERE id > @@autocommit", "SELECT @@tx_isolation", "SELECT @@max_allowed_packet, @@auto_increment_increment, @@sql_safe_updates, @@foreign_key_checks",
	}
	for _, change := range []string{"SET autocommit = 1", "INSERT INTO t (n) VALUES (5), (6)", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET time_zone = '+02:00'", "INSERT INTO t (n) VALUES (7)", "DELETE FROM t WHERE n = 5", "SET sql_mode = ''", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT * FROM t"} {
		p.run(change)
		for _, q := range queries {
			p.both(q, true)
			if !p.byPlan(q) {
				t.Errorf("%s, %s: not by a plan", change, q)
			}
		}
	}
	for _, q := range []string{"SELECT 1 + 'x'", "SELECT @@warning_count", "SELECT @@warning_count", "SELECT @@error_count", "SELECT @@no_such", "SELECT @@no_such", "SELECT @@last_insert_id", "SELECT @@last_insert_id", "SELECT n FROM t WHERE @@autocommit = 1", "SELECT n FROM t WHERE @@autocommit = 1", "UPDATE t SET n = @@autocommit WHERE id = 1", "UPDATE t SET n = @@autocommit WHERE id = 1", "SELECT @a", "SELECT @a"} {
		p.both(q, true)
	}
	if p.byPlan("SELECT @@warning_count") {
		t.Error("the number of the last statement's warnings is read by a plan")
	}
}
