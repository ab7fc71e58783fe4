package farmsql

import (
	"testing"

	"github.com/go-sql-driver/mysql"
)

// TestDefinitionsAside checks that SHOW and the like leave the client's transaction as it is, whether they succeed or fail,
// and however the transaction was opened.
func TestDefinitionsAside(t *testing.T) {
	conns := besideConns(t, 1)
	own, other := conns[0], conns[1]
	execAll(t, own, besideTables...)
	execAll(t, own, "USE a")
	count := func(query string, want int) {
		t.Helper()
		var got int
		if err := own.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d: %v", query, got, want, err)
		}
	}
	const rows = "SELECT table_rows FROM information_schema.tables WHERE table_schema = 'a' AND table_name = 'other'"
	for _, open := range []string{"BEGIN", "SET autocommit = 0"} {
		execAll(t, own, open, "INSERT INTO other VALUES (1, 1), (2, 2)", "SHOW TABLES", "SAVEPOINT s", "DESCRIBE other", "INSERT INTO other VALUES (3, 3)", "SHOW DATABASES", "ROLLBACK TO s")
		if _, err := own.ExecContext(t.Context(), "SHOW COLUMNS FROM nowhere"); numberOf(err) != 1146 {
			t.Errorf("SHOW COLUMNS FROM nowhere: %v", err)
		}
		if _, err := own.PrepareContext(t.Context(), "SELECT * FROM nowhere WHERE id = ?"); numberOf(err) != 1146 {
			t.Errorf("preparing for no table: %v", err)
		}
		count("SELECT COUNT(*) FROM other", 2)
		count(rows, 2) // with the transaction's own
		execAll(t, own, "ROLLBACK")
		count("SELECT COUNT(*) FROM other", 0)
		execAll(t, own, "COMMIT", "SET autocommit = 1")
	}
	// A transaction that has emptied a table has changed the catalog, and sees that.
	execAll(t, own, "INSERT INTO other VALUES (1, 1)", "BEGIN", "DELETE FROM other")
	count(rows, 0)
	execAll(t, own, "ROLLBACK")
	count(rows, 1)
	// With autocommit off, the statement leaves no transaction open.
	execAll(t, own, "SET autocommit = 0", "COMMIT", "SHOW TABLES", "SELECT * FROM information_schema.columns")
	execAll(t, other, "USE a", "INSERT INTO other VALUES (9, 9)", "ALTER TABLE other ADD COLUMN m INT")
	count("SELECT COUNT(m) FROM other WHERE m IS NOT NULL", 0)
}

func numberOf(err error) uint16 {
	if said, ok := err.(*mysql.MySQLError); ok {
		return said.Number
	}
	return 0
}
