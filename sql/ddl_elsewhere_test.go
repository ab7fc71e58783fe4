package sql

import (
	"testing"

	"github.com/farmsql/farmsql/farm"
)

// Definitions in one schema do not disturb transactions in another, whether the machine
// knows the tables of these already or not.
func TestDefinitionsElsewhere(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openInstance(t, cfg)
	c := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "CREATE DATABASE e", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "CREATE TABLE d.u (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)",
		"CREATE TABLE e.s (id INT PRIMARY KEY, v INT)",
	} {
		c.exec(q)
	}
	for _, isCold := range []bool{false, true} {
		for _, definition := range []string{
			"CREATE TABLE x (id INT PRIMARY KEY)", "DROP TABLE x", "CREATE INDEX i ON s (v)", "ALTER TABLE s ADD COLUMN w INT", "ALTER TABLE s DROP COLUMN w", "DROP INDEX i ON s",
			"TRUNCATE TABLE s", "RENAME TABLE s TO r", "RENAME TABLE r TO s", "CREATE VIEW v AS SELECT 1", "DROP VIEW v", "CREATE DATABASE f", "ALTER DATABASE f COLLATE utf8mb4_bin", "DROP DATABASE f",
			"CREATE PROCEDURE p() SELECT 1", "DROP PROCEDURE p", "CREATE EVENT v ON SCHEDULE EVERY 1 DAY DO SELECT 1", "DROP EVENT v",
			"CREATE TRIGGER g BEFORE INSERT ON s FOR EACH ROW SET NEW.v = 1", "DROP TRIGGER g",
		} {
			if isCold {
				in.close()
				in = openInstance(t, cfg)
			}
			a, b := in.client("d"), in.client("e")
			if err := a.must(0, "BEGIN", "SELECT * FROM t", "UPDATE t SET v = v + 1 WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			b.exec(definition)
			for _, q := range []string{
				"SELECT * FROM u", "SELECT COUNT(*) FROM t JOIN u ON t.id = u.v WHERE t.v IN (SELECT v FROM u)", "SHOW CREATE TABLE t", "SHOW TABLES", "SHOW DATABASES",
				"INSERT INTO u VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1", "DELETE FROM u WHERE id > 5", "COMMIT",
			} {
				if _, _, err := a.run(q); err != nil {
					t.Errorf("%s between, cold %v: %s: %v", definition, isCold, q, err)
					a.s.Abort()
					break
				}
			}
		}
	}
	in.close()
}
