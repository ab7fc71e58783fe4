package wire

import (
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

func TestShowsDefinitions(t *testing.T) {
	for query, want := range map[string]bool{
		"SHOW TABLES":                        true,
		"SHOW FULL COLUMNS FROM t LIKE 'a%'": true,
		"DESCRIBE t":                         true,
		"SELECT t.column_name, t.* FROM information_schema.columns AS t WHERE t.table_name = 'x'":                       true,
		"SELECT * FROM INFORMATION_SCHEMA.tables t JOIN information_schema.columns c ON c.table_name = t.table_name":    true,
		"SELECT 1 FROM information_schema.tables WHERE table_name IN (SELECT table_name FROM information_schema.views)": true,
		"SELECT table_name INTO @name FROM information_schema.tables":                                                   false, // cannot be run again
		"SHOW TABLES WHERE EXISTS (SELECT 1 FROM t)":                                                                    false,
		"SHOW COLUMNS FROM t WHERE Field IN (SELECT name FROM u)":                                                       false,
		"SHOW TABLE STATUS WHERE Name = (SELECT MAX(name) FROM u)":                                                      false,
		"SHOW INDEX FROM t WHERE Key_name IN (SELECT name FROM u)":                                                      false,
		"SHOW COLLATION WHERE `Charset` IN (SELECT name FROM u)":                                                        false,
		"SHOW VARIABLES WHERE Variable_name IN (SELECT name FROM u)":                                                    false,
		"SHOW TABLES WHERE tables_in_a = 't'":                                                                           true,
		"SELECT 1":                                                                                                      false,
		"SELECT * FROM t":                                                                                               false,
		"SELECT * FROM columns":                                                                                         false,
		"SELECT * FROM (SELECT 1) x":                                                                                    false,
		"SELECT * FROM information_schema.tables, t":                                                                    false,
		"SELECT * FROM t JOIN information_schema.tables i ON i.table_name = t.name":                                     false,
		"SELECT * FROM information_schema.tables WHERE table_name IN (SELECT name FROM t)":                              false,
		"INSERT INTO t SELECT table_name FROM information_schema.tables":                                                false,
		"UPDATE t SET n = (SELECT COUNT(*) FROM information_schema.tables)":                                             false,
		"SELECT table_name FROM information_schema.tables UNION SELECT table_name FROM information_schema.views":        false,
	} {
		ast, err := sqlparser.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := newStatement(query, ast).aside; got != want {
			t.Errorf("%s: %v", query, got)
		}
	}
}

// What shows definitions is run again although a transaction is open, and in the end does not say that
// this has ended.
func TestRetryBesideTransaction(t *testing.T) {
	s := startServer(t, Config{RetryMax: 5})
	c, err := s.open(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, query := range []string{"show databases", "select * from information_schema.schemata"} {
		mustExec(t, c, "begin")
		s.script.reset(conflictUntil(2))
		mustExec(t, c, query)
		if s.script.ended != 3 || !s.script.lastBegun().Aside {
			t.Errorf("%s: %d attempts, want 3; the last %+v", query, s.script.ended, s.script.lastBegun())
		}
		s.script.reset(conflictUntil(1 << 30))
		_, err = c.ExecContext(t.Context(), query)
		wantError(t, err, 1205, "HY000", "Lock wait timeout")
		s.script.reset(nil)
		mustExec(t, c, "rollback")
	}
}
