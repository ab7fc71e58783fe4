package sql

import (
	"slices"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/myerr"
)

// Every variable that go-mysql-server knows, and lets be set, is in one class, and none is
// there that it does not know.
func TestEveryVariableHasAClass(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range classes {
		for _, name := range strings.Fields(c.names) {
			if seen[name] {
				t.Errorf("%s is in two classes", name)
			}
			seen[name] = true
			v, _, ok := gms.SystemVariables.GetGlobal(name)
			if !ok {
				t.Errorf("%s is no variable", name)
			} else if v.IsReadOnly() {
				t.Errorf("%s cannot be set anyway", name)
			}
			if c.class == ignored && c.reason == "" {
				t.Errorf("%s is ignored without a reason", name)
			}
		}
	}
	for name, v := range gms.SystemVariables.NewSessionMap() {
		if !v.Var.IsReadOnly() && !seen[name] {
			t.Errorf("%s can be set and is in no class", name)
		}
	}
}

// wantSet sets a variable and compares the error's number and that it names the variable.
func (c *client) wantSet(query, name string, code int) {
	c.in.t.Helper()
	_, _, err := c.run(query)
	if code == 0 {
		if err != nil {
			c.in.t.Errorf("%s: %v", query, err)
		}
		return
	}
	if err == nil {
		c.in.t.Errorf("%s succeeds, want error %d", query, code)
		return
	}
	if e := myerr.Of(err); e.Num != code || !strings.Contains(strings.ToLower(e.Message), name) {
		c.in.t.Errorf("%s: %d %q, want %d with the name", query, e.Num, e.Message, code)
	}
}

func (c *client) warnings() (texts []string) {
	for _, row := range c.exec("SHOW WARNINGS") {
		texts = append(texts, row[2].(string))
	}
	return texts
}

// Setting a variable without an effect is refused, or succeeds with a warning. Any variable may be set to
// the value that it has.
func TestSetByClass(t *testing.T) {
	c := newInstance(t).client("")
	for name, v := range gms.SystemVariables.NewSessionMap() {
		m, ok := v.Var.(*gms.MysqlSystemVariable)
		if !ok || m.IsReadOnly() {
			continue
		}
		scopes := []string{"GLOBAL"}
		switch m.Scope.Type {
		case gms.SystemVariableScope_Session:
			scopes = []string{"SESSION"}
		case gms.SystemVariableScope_Both:
			scopes = append(scopes, "SESSION")
		}
		for _, scope := range scopes {
			var value any
			if scope == "GLOBAL" {
				_, value, _ = gms.SystemVariables.GetGlobal(name)
			} else if value, _ = c.s.GetSessionVariable(gms.NewEmptyContext(), name); value == nil {
				continue
			}
			before := "@@" + scope + ".`" + name + "`"
			if value == nil {
				continue
			}
			c.wantSet("SET "+before+" = "+before, name, 0)
			if got := c.warnings(); len(got) > 0 {
				t.Errorf("%s set to what it is: %q", name, got)
			}
		}
	}
	for _, q := range []struct {
		query, name string
		code        int
	}{
		{"SET GLOBAL max_connections = 7", "max_connections", myerr.WrongValue.Number},
		{"SET GLOBAL general_log = 1", "general_log", myerr.WrongValue.Number},
		{"SET GLOBAL slow_query_log_file = 'x'", "slow_query_log_file", myerr.WrongValue.Number},
		{"SET sql_safe_updates = 1", "sql_safe_updates", myerr.WrongValue.Number},
		{"SET auto_increment_increment = 2", "auto_increment_increment", myerr.WrongValue.Number},
		{"SET GLOBAL gtid_purged = 'x:1'", "gtid_purged", myerr.WrongValue.Number},
		{"SET GLOBAL event_scheduler = ON", "event_scheduler", myerr.WrongValue.Number},
		{"SET PERSIST max_execution_time = 5", "max_execution_time", mysql.ERNotSupportedYet},
		{"SET @@PERSIST_ONLY.max_execution_time = 5", "max_execution_time", mysql.ERNotSupportedYet},
		{"SET TRANSACTION READ ONLY", "read only", mysql.ERNotSupportedYet},
		{"SET GLOBAL version = '9'", "version", mysql.ERIncorrectGlobalLocalVar},
		{"SET default_storage_engine = 'innodb'", "", 0},
		{"SET default_storage_engine = InnoDB", "", 0},
		{"SET sql_auto_is_null = 0, wait_timeout = 28800, sql_quote_show_create = 1", "", 0},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "", 0},
		{"SET GLOBAL log_output = 'FILE'", "", 0},
	} {
		c.wantSet(q.query, q.name, q.code)
	}
	c.exec("SET NAMES latin1")
	if got := c.warnings(); len(got) != 1 || !strings.Contains(got[0], "UTF-8") {
		t.Errorf("SET NAMES latin1: warnings %q", got)
	}
	c.exec("SET NAMES utf8mb4")
	for _, q := range []string{"SET wait_timeout = 5", "SET GLOBAL sort_buffer_size = 1048576", "SET net_write_timeout = 600"} {
		c.exec(q)
		if got := c.warnings(); len(got) != 1 || !strings.Contains(got[0], "no effect") {
			t.Errorf("%s: warnings %q", q, got)
		}
	}
	c.exec("SET GLOBAL sort_buffer_size = DEFAULT")
}

func TestWarningsBySettings(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("SET max_error_count = 1")
	c.exec("SET wait_timeout = 5, net_read_timeout = 5")
	if got := c.warnings(); len(got) != 1 {
		t.Errorf("max_error_count = 1: %q", got)
	}
	c.exec("SET max_error_count = DEFAULT")
	for notes, want := range map[string]int{"0": 0, "1": 1} {
		c.exec("SET sql_notes = " + notes)
		c.exec("CREATE DATABASE IF NOT EXISTS d")
		if got := c.warnings(); len(got) != want {
			t.Errorf("sql_notes = %s: %q", notes, got)
		}
	}
}

// writes are statements that change something, each in another way.
var writes = []string{
	"INSERT INTO d.t VALUES (9, 9)", "REPLACE INTO d.t VALUES (1, 9)", "UPDATE d.t SET v = 2 WHERE id = 1", "UPDATE d.t SET v = v + 1",
	"DELETE FROM d.t WHERE id = 1", "DELETE FROM d.t", "TRUNCATE d.t", "CREATE TABLE d.u (id INT)", "DROP TABLE d.t",
	"ALTER TABLE d.t ADD x INT", "CREATE INDEX k ON d.t (v)", "CREATE VIEW d.w AS SELECT 1", "CREATE DATABASE e", "DROP DATABASE d",
	"CREATE USER joe@localhost", "CALL d.p()", "CREATE TRIGGER d.g BEFORE INSERT ON d.t FOR EACH ROW SET NEW.v = 1",
}

func TestReadOnlyMachine(t *testing.T) {
	in := openWith(t, testConfig, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	root := in.client("")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)",
		"CREATE PROCEDURE d.p() SQL SECURITY INVOKER UPDATE d.t SET v = 5", "CREATE USER ann@localhost", "GRANT ALL ON *.* TO ann@localhost", "REVOKE SUPER ON *.* FROM ann@localhost"} {
		root.exec(q)
	}
	root = in.client("d")
	ann := in.as("ann", "d")
	wantAll := func(c *client, option string) {
		t.Helper()
		for _, q := range writes {
			for range 3 { // planned, and compiled
				_, _, err := c.run(q)
				if err == nil {
					t.Fatalf("%s is run", q)
				}
				if e := myerr.Of(err); e.Num != myerr.OptionPrevents.Number || !strings.Contains(e.Message, option) {
					t.Errorf("%s: %v", q, e)
				}
			}
		}
		c.exec("SELECT * FROM d.t FOR UPDATE")
	}
	// One that has written before may not commit.
	ann.exec("BEGIN")
	ann.exec("UPDATE d.t SET v = 3")
	root.exec("SET GLOBAL read_only = ON")
	if _, _, err := ann.run("COMMIT"); err == nil || myerr.Of(err).Num != myerr.OptionPrevents.Number {
		t.Errorf("commit: %v", err)
	}
	wantAll(ann, "--read-only ")
	root.exec("UPDATE d.t SET v = 2")
	root.exec("SET GLOBAL super_read_only = 1")
	wantAll(root, "--super-read-only ")
	root.exec("SET GLOBAL read_only = 0")
	if got := root.show(root.read("SELECT @@read_only, @@super_read_only")); got != "0 | 0\n" {
		t.Errorf("variables: %q", got)
	}
	root.exec("SET GLOBAL super_read_only = 1")
	if got := root.show(root.read("SELECT @@read_only, @@super_read_only")); got != "1 | 1\n" {
		t.Errorf("variables: %q", got)
	}
	root.exec("SET GLOBAL read_only = OFF")
	ann.exec("UPDATE d.t SET v = 4")
}

// read is run for show.
func (c *client) read(query string) (gms.Schema, []gms.Row) {
	c.in.t.Helper()
	schema, rows, err := c.run(query)
	if err != nil {
		c.in.t.Fatalf("%s: %v", query, err)
	}
	return schema, rows
}

func TestReadOnlySession(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)",
		"CREATE PROCEDURE d.p() UPDATE d.t SET v = 5", "USE d", "SET SESSION TRANSACTION READ ONLY"} {
		c.exec(q)
	}
	if got := c.show(c.read("SELECT @@transaction_read_only, @@tx_read_only")); got != "1 | 1\n" {
		t.Errorf("variables: %q", got)
	}
	for _, begin := range []string{"", "BEGIN"} {
		for _, q := range slices.DeleteFunc(slices.Clone(writes), func(q string) bool { return strings.Contains(q, "USER") }) {
			if begin != "" {
				c.exec(begin)
			}
			if _, _, err := c.run(q); err == nil {
				t.Errorf("%s is run", q)
			} else if e := myerr.Of(err); e.Num != myerr.ReadOnly.Number {
				t.Errorf("%s: %v", q, e)
			}
			c.exec("ROLLBACK")
		}
	}
	c.exec("SET SESSION TRANSACTION READ WRITE")
	c.exec("UPDATE d.t SET v = 4")
}

func TestTableLocks(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("CREATE TABLE d.t (id INT PRIMARY KEY)")
	c.wantCode("FLUSH TABLES WITH READ LOCK", mysql.ERNotSupportedYet, "42000")
	c.wantCode("FLUSH TABLES d.t WITH READ LOCK", mysql.ERNotSupportedYet, "42000")
	c.exec("FLUSH TABLES")
	c.wantCode("LOCK TABLES d.x READ", mysql.ERNoSuchTable, "42S02")
	c.exec("SET autocommit = 0")
	c.exec("INSERT INTO d.t VALUES (1)")
	c.exec("LOCK TABLES d.t WRITE")
	if got := c.warnings(); len(got) != 1 || got[0] != noTableLocks {
		t.Errorf("warnings %q", got)
	}
	c.exec("ROLLBACK")
	c.exec("INSERT INTO d.t VALUES (2)")
	c.exec("UNLOCK TABLES")
	c.exec("ROLLBACK")
	c.exec("INSERT INTO d.t VALUES (3)")
	c.exec("UNLOCK TABLES")
	c.exec("ROLLBACK")
	if rows := c.exec("SELECT id FROM d.t"); len(rows) != 2 {
		t.Errorf("%d rows, want the two that LOCK and UNLOCK TABLES have committed", len(rows))
	}
}

// TestDivisionByZero: it was a warning in every sql_mode.
func TestDivisionByZero(t *testing.T) {
	c := newInstance(t).client("")
	for mode, want := range map[string]string{"": "", "STRICT_TRANS_TABLES": "", "ERROR_FOR_DIVISION_BY_ZERO": "Warning | 1365 | Division by 0\n", "TRADITIONAL": "Warning | 1365 | Division by 0\n"} {
		c.exec("set sql_mode = '" + mode + "'")
		c.exec("select 1 / 0")
		if got := c.shown("show warnings"); got != want {
			t.Errorf("%s: got %q, want %q", mode, got, want)
		}
	}
}

// TestDescribedDefaults: they were shown as they are written.
func TestDescribedDefaults(t *testing.T) {
	const setup = "create table t (s varchar(9) default 'it''s', n int default 7, j int default (1+2), e enum('a') default 'a', x int)"
	shows{setup, "describe t", "s | varchar(9) | YES |  | it's | \nn | int | YES |  | 7 | \nj | int | YES |  | (1 + 2) | DEFAULT_GENERATED\ne | enum('a') | YES |  | a | \nx | int | YES |  | NULL | \n"}.test(t)
	shows{setup, "show full columns from t like 's'", "s | varchar(9) | utf8mb4_0900_ai_ci | YES |  | it's |  |  | \n"}.test(t)
	shows{"create table t (id int primary key); create table l (a int); create trigger g after delete on t for each row insert into l values (old.id); create trigger h before insert on t for each row insert into l values (1)",
		"explain delete from t where id = 1", "1 | DELETE | t | NULL | const | PRIMARY | PRIMARY | 4 | const | 0 | NULL | Using where\n"}.test(t)
}

// SET name = DEFAULT restores what a session began with, where that is MySQL's default and not
// go-mysql-server's.
func TestSetDefault(t *testing.T) {
	c := newInstance(t).client("")
	for name, other := range map[string]string{
		"sql_mode": "''", "collation_connection": "'utf8mb4_bin'", "collation_server": "'utf8mb4_bin'", "collation_database": "'utf8mb4_bin'",
	} {
		began := c.exec("SELECT @@" + name)
		c.exec("SET " + name + " = " + other)
		c.exec("SET " + name + " = DEFAULT")
		if got := c.exec("SELECT @@" + name); got[0][0] != began[0][0] {
			t.Errorf("%s is %v, and was %v", name, got[0][0], began[0][0])
		}
	}
}
