package bench

import (
	"errors"
	"strings"
	"testing"
)

func TestDialects(t *testing.T) {
	for dsn, want := range map[string]*dialect{
		"root@tcp(127.0.0.1:3306)/":      mySQL,
		"root@unix(/s)/kv?timeout=3s":    mySQL,
		"root:a://b@tcp(127.0.0.1)/":     mySQL,
		"postgres://postgres@127.0.0.1/": postgreSQL,
		"postgresql://127.0.0.1:5432/db": postgreSQL,
	} {
		if d, err := dialectOf(dsn); d != want || err != nil {
			t.Errorf("%s: %v, %v", dsn, d, err)
		}
	}
	for _, dsn := range []string{"mysql://root@127.0.0.1/", "Oracle://scott:tiger@x/", "redis+x://127.0.0.1"} {
		scheme, _, _ := strings.Cut(strings.ToLower(dsn), "://")
		if _, err := dialectOf(dsn); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), scheme) || strings.Contains(err.Error(), "tiger") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestInPostgreSQL(t *testing.T) {
	for mysql, want := range map[string]string{
		"CREATE DATABASE kv":                     "CREATE SCHEMA kv",
		"DROP DATABASE IF EXISTS kv":             "DROP SCHEMA IF EXISTS kv CASCADE",
		"USE kv":                                 "SET search_path TO kv",
		"COMMIT":                                 "COMMIT",
		"SELECT CAST(SUM(a) AS SIGNED) FROM t":   "SELECT CAST(SUM(a) AS BIGINT) FROM t",
		"SELECT a FROM t WHERE b = ? AND c < ?":  "SELECT a FROM t WHERE b = $1 AND c < $2",
		"INSERT INTO t VALUES (?, 'who?', ?)":    "INSERT INTO t VALUES ($1, 'who?', $2)",
		"INSERT INTO t VALUES ('it''s?', ?, '')": "INSERT INTO t VALUES ('it''s?', $1, '')",
		"CREATE TABLE d.t (a INT UNSIGNED NOT NULL, b TINYINT, c DATETIME, d BINARY(16), e VARBINARY(32), f VARCHAR(9) COLLATE utf8mb4_bin, g INT)": "CREATE TABLE d.t (a BIGINT NOT NULL, b SMALLINT, c TIMESTAMP, d BYTEA, e BYTEA, f VARCHAR(9) COLLATE \"C\", g INT)",
		"CREATE TABLE t (\n\ta INT, b INT,\n\tPRIMARY KEY (a),\n\tKEY t_b (b, a), KEY b (b), FOREIGN KEY (b) REFERENCES t (a))":                     "CREATE TABLE t (\n\ta INT, b INT,\n\tPRIMARY KEY (a), FOREIGN KEY (b) REFERENCES t (a)); CREATE INDEX t_b ON t (b, a); CREATE INDEX b ON t (b)",
	} {
		if got := inPostgreSQL(mysql); got != want {
			t.Errorf("%s:\n got %s\nwant %s", mysql, got, want)
		}
	}
}
