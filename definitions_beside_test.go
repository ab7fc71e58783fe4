package farmsql

import (
	stdsql "database/sql"
	"slices"
	"testing"
)

// besideTables are what TestDefinitionsBesideTransactions works on: t, u and v in transactions, the
// others by definitions.
var besideTables = []string{
	"DROP DATABASE IF EXISTS a", "DROP DATABASE IF EXISTS b", "CREATE DATABASE a", "CREATE DATABASE b",
	"CREATE TABLE a.t (id INT PRIMARY KEY, n INT)", "INSERT INTO a.t VALUES (1, 1), (2, 2)",
	"CREATE TABLE a.u (id INT PRIMARY KEY AUTO_INCREMENT, n INT)", "INSERT INTO a.u VALUES (1, 1)",
	"CREATE TABLE a.child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES a.t (id))",
	"CREATE VIEW a.v AS SELECT id, n FROM a.t",
	"CREATE TABLE a.other (id INT PRIMARY KEY, n INT)", "CREATE TABLE b.other (id INT PRIMARY KEY, n INT)",
}

// definitionsBeside change a database, in this order, without concern for the tables t, u and child.
var definitionsBeside = []string{
	"CREATE TABLE x (id INT PRIMARY KEY, o INT, FOREIGN KEY (o) REFERENCES other (id))", "ALTER TABLE x ADD COLUMN y INT", "DROP TABLE x",
	"CREATE INDEX i ON other (n)", "ALTER TABLE other ADD COLUMN m INT", "ALTER TABLE other DROP COLUMN m", "RENAME TABLE other TO more", "RENAME TABLE more TO other",
	"CREATE TRIGGER g BEFORE INSERT ON other FOR EACH ROW SET NEW.n = 1", "DROP TRIGGER g", "TRUNCATE TABLE other", "CREATE VIEW w AS SELECT 1", "DROP VIEW w",
	"CREATE PROCEDURE p() SELECT 1", "DROP PROCEDURE p", "ALTER DATABASE COLLATE utf8mb4_bin", "CREATE DATABASE IF NOT EXISTS c", "DROP DATABASE IF EXISTS c",
}

// inTransaction is what a transaction does while others change definitions.
var inTransaction = []string{
	"SELECT n FROM t WHERE id = 1", "SELECT COUNT(*) FROM t JOIN u ON t.id = u.id WHERE t.n IN (SELECT n FROM u)", "SELECT * FROM v",
	"UPDATE t SET n = n + 1 WHERE id = 1", "UPDATE t SET n = n + 1 WHERE n > 100", "INSERT INTO u (n) VALUES (1), (2)", "DELETE FROM u WHERE id > 1",
	"INSERT INTO child VALUES (1, 1) ON DUPLICATE KEY UPDATE t = 2", "REPLACE INTO child VALUES (2, 2)",
	"SHOW TABLES", "SHOW TABLE STATUS", "SHOW TRIGGERS", "SHOW CREATE TABLE t", "DESCRIBE t", "SHOW DATABASES",
	"SELECT * FROM information_schema.columns WHERE table_name = 't'", "SELECT * FROM information_schema.tables t JOIN information_schema.schemata s ON s.schema_name = t.table_schema",
	"SELECT * FROM information_schema.statistics", "SELECT * FROM information_schema.key_column_usage", "SELECT * FROM information_schema.triggers", "SELECT * FROM information_schema.routines",
}

// Transactions commit whatever others define meanwhile, in other databases and for other tables of
// theirs, on one machine and between three.
func TestDefinitionsBesideTransactions(t *testing.T) {
	for _, machines := range []int{1, 3} {
		conns := besideConns(t, machines)
		execAll(t, conns[0], besideTables...)
		for i, definition := range definitionsBeside {
			for j, database := range []string{"a", "b"} {
				own, other := conns[(i+j)%len(conns)], conns[(i+j+1)%len(conns)]
				execAll(t, own, "USE a", []string{"BEGIN", "SET autocommit = 0"}[i%2])
				execAll(t, own, inTransaction...)
				execAll(t, other, "USE "+database, definition)
				for _, q := range append(slices.Clone(inTransaction), "COMMIT", "SET autocommit = 1") {
					if _, err := own.ExecContext(t.Context(), q); err != nil {
						t.Fatalf("%d machines, %s in %s: %s: %v", machines, definition, database, q, err)
					}
				}
			}
		}
	}
}

// A transaction does not commit if a definition that it depends on has changed, on one machine and
// between three.
func TestDefinitionsOfTransactions(t *testing.T) {
	uses := map[string][]string{
		"SELECT n FROM t WHERE id = 1":        {"ALTER TABLE t ADD COLUMN m INT", "CREATE INDEX i ON t (n)", "DROP TABLE child, t", "RENAME TABLE t TO s", "DROP DATABASE a"},
		"SELECT * FROM v":                     {"DROP VIEW v", "ALTER TABLE t ADD COLUMN m INT"},
		"UPDATE t SET n = n + 1 WHERE id = 1": {"ALTER TABLE t ADD COLUMN m INT", "CREATE INDEX i ON t (n)", "CREATE TABLE x (t INT, FOREIGN KEY (t) REFERENCES t (id))", "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.n = 1"},
		"UPDATE t SET n = n + 1 WHERE n > 0":  {"ALTER TABLE t ADD CHECK (n < 100)", "CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO u (n) VALUES (1)"},
		"INSERT INTO u (n) VALUES (1), (2)":   {"ALTER TABLE u ADD UNIQUE (n)", "CREATE TRIGGER g BEFORE INSERT ON u FOR EACH ROW SET NEW.n = 1", "ALTER TABLE u ADD FOREIGN KEY (id) REFERENCES t (id)"},
		"INSERT INTO child VALUES (1, 1)":     {"ALTER TABLE t ADD COLUMN m INT", "ALTER TABLE child DROP FOREIGN KEY child_ibfk_1", "CREATE TRIGGER g BEFORE INSERT ON child FOR EACH ROW SET NEW.t = 2"},
		"DELETE FROM t WHERE id = 2":          {"CREATE TRIGGER g AFTER DELETE ON t FOR EACH ROW INSERT INTO u (n) VALUES (1)", "ALTER TABLE child ADD COLUMN m INT"},
		"REPLACE INTO u VALUES (1, 2)":        {"CREATE TRIGGER g AFTER DELETE ON u FOR EACH ROW SET @gone = 1"},
	}
	for _, machines := range []int{1, 3} {
		conns := besideConns(t, machines)
		n := 0
		for use, definitions := range uses {
			for _, definition := range definitions {
				own, other := conns[n%len(conns)], conns[(n+1)%len(conns)]
				n++
				execAll(t, other, besideTables...)
				execAll(t, other, "USE a")
				execAll(t, own, "USE a", "BEGIN", use, "ROLLBACK", "BEGIN", "INSERT INTO b.other VALUES (1, 1)", use)
				execAll(t, other, definition)
				_, err := own.ExecContext(t.Context(), "COMMIT")
				if n := numberOf(err); n != 1213 && n != 1412 {
					t.Errorf("%d machines: %s, then %s by another: %v", machines, use, definition, err)
				}
			}
		}
	}
}

// besideConns returns two connections of one machine, or one of each of three.
func besideConns(t *testing.T, machines int) []*stdsql.Conn {
	t.Helper()
	cfg := small(t.TempDir())
	cfg.Machines = machines
	db := mustOpen(t, cfg)
	conns := make([]*stdsql.Conn, max(machines, 2))
	for i := range conns {
		c, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns[i] = c
	}
	return conns
}

func execAll(t *testing.T, c *stdsql.Conn, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := c.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}
