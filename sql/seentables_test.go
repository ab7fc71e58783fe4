package sql

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/myerr"
)

// Users see only what they have a privilege on, as in MariaDB.
func TestTablesOfUsers(t *testing.T) {
	in := openWith(t, testConfig, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	root := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "CREATE DATABASE e", "CREATE TABLE d.t (id INT PRIMARY KEY)", "CREATE TABLE d.u (id INT PRIMARY KEY)",
		"CREATE TABLE e.x (id INT PRIMARY KEY)", "CREATE VIEW d.v AS SELECT id FROM d.t", "CREATE VIEW d.w AS SELECT id FROM d.t",
		"CREATE EVENT d.ev ON SCHEDULE EVERY 1 YEAR DO SELECT 1",
		"CREATE USER one@localhost, viewer@localhost, whole@localhost, runner@localhost, admin@localhost",
		"GRANT SELECT ON d.t TO one@localhost", "GRANT SELECT ON d.v TO viewer@localhost", "GRANT INSERT, EVENT ON d.* TO whole@localhost",
		"GRANT EXECUTE ON d.* TO runner@localhost", "GRANT PROCESS ON *.* TO admin@localhost",
	} {
		root.exec(q)
	}
	const tables, keys = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('d', 'e') ORDER BY table_name",
		"SELECT table_name FROM information_schema.statistics WHERE table_schema IN ('d', 'e') ORDER BY table_name"
	const events = "SELECT event_name FROM information_schema.events"
	const columns = "SELECT table_name FROM information_schema.columns WHERE table_schema IN ('d', 'e') ORDER BY table_name"
	for _, want := range []struct{ user, query, rows string }{
		{"one", tables, "[[t]]"}, {"one", keys, "[[t]]"}, {"one", events, "[]"}, {"one", columns, "[[t]]"},
		{"viewer", tables, "[[v]]"}, {"viewer", keys, "[]"},
		{"whole", tables, "[[t] [u] [v] [w]]"}, {"whole", keys, "[[t] [u]]"}, {"whole", events, "[[ev]]"},
		{"runner", tables, "[]"}, {"runner", columns, "[]"},
		{"admin", tables, "[]"}, {"admin", keys, "[]"}, {"admin", columns, "[]"},
		{"one", "SHOW TABLES FROM d", "[[t]]"}, {"viewer", "SHOW TABLES FROM d", "[[v]]"},
		{"one", "SELECT COUNT(*) > 10 FROM information_schema.tables WHERE table_schema = 'information_schema'", "[[true]]"},
	} {
		if got := fmt.Sprint(in.as(want.user, "").exec(want.query)); got != want.rows {
			t.Errorf("%s: %s: %s, want %s", want.user, want.query, got, want.rows)
		}
	}
	for user, want := range map[string]int{"one": 1, "whole": 2, "runner": 0, "admin": 0} {
		for _, q := range []string{"SHOW TABLE STATUS FROM d", "SHOW TABLE STATUS FROM d WHERE Name <> ''"} {
			if got := len(in.as(user, "").exec(q)); got != want {
				t.Errorf("%s: %s: %d rows, want %d", user, q, got, want)
			}
		}
	}
	root.exec("CREATE TRIGGER d.tr BEFORE INSERT ON d.t FOR EACH ROW SET NEW.id = NEW.id + 1")
	for _, q := range []string{
		"CREATE USER trigger1@localhost, trigger2@localhost, shows@localhost", "GRANT TRIGGER ON d.t TO trigger1@localhost", "GRANT TRIGGER ON d.u TO trigger2@localhost",
		"GRANT SELECT, SHOW VIEW ON d.v TO shows@localhost",
	} {
		root.exec(q)
	}
	for _, want := range []struct {
		query, number string
		may, mayNot   []string
	}{
		{"SHOW CREATE TABLE d.t", "1142", []string{"one", "whole", "root", "trigger1"}, []string{"viewer", "runner", "admin"}},
		{"SHOW COLUMNS FROM d.t", "1142", []string{"one", "whole", "root"}, []string{"viewer", "runner", "admin"}},
		{"SHOW FULL COLUMNS FROM t FROM d", "1142", []string{"one", "whole", "root"}, []string{"viewer", "runner", "admin"}},
		{"DESCRIBE d.t", "1142", []string{"one", "whole", "root"}, []string{"viewer", "runner", "admin"}},
		{"SHOW INDEX FROM t FROM d", "1142", []string{"one", "whole", "root"}, []string{"viewer", "runner", "admin"}},
		{"SHOW CREATE VIEW d.v", "1142", []string{"shows", "root"}, []string{"one", "viewer", "whole", "runner", "admin"}},
		{"SHOW CREATE TRIGGER d.tr", "1227", []string{"trigger1", "root"}, []string{"one", "trigger2", "whole", "runner", "admin"}},
		{"SHOW CREATE EVENT d.ev", "1044", []string{"whole", "root"}, []string{"one", "viewer", "runner", "admin"}},
	} {
		for _, user := range want.may {
			in.as(user, "").exec(want.query)
		}
		for _, user := range want.mayNot {
			if _, _, err := in.as(user, "").run(want.query); err == nil || fmt.Sprint(myerr.Of(err).Num) != want.number {
				t.Errorf("%s: %s: %v, want %s", user, want.query, err, want.number)
			}
		}
	}
	if got := len(root.exec(tables)); got != 5 {
		t.Errorf("root sees %d tables, want 5", got)
	}
}
