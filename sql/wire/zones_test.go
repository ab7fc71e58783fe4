package wire

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"testing"
)

// Sessions in several time zones share cached statements, and each sees TIMESTAMPs in its own zone: as text and prepared,
// compiled, by plans of our own, and in the parts that go-mysql-server executes.
func TestTimestampsOfSessions(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	for _, q := range []string{
		"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, ts TIMESTAMP(3) NULL, v INT)",
		"SET time_zone = '+00:00'", "INSERT INTO test.t VALUES (1, '2020-01-01 00:00:00', 0)",
	} {
		_, err := db.Exec(q)
		must(t, err)
	}
	zones := map[string]string{"+00:00": "2020-01-01 00:00:00.000", "+05:30": "2020-01-01 05:30:00.000", "-08:00": "2019-12-31 16:00:00.000"}
	sessions := make(map[string]*stdsql.Conn)
	for zone := range zones {
		c, err := db.Conn(t.Context())
		must(t, err)
		defer c.Close()
		_, err = c.ExecContext(t.Context(), "SET time_zone = '"+zone+"'")
		must(t, err)
		sessions[zone] = c
	}
	for range 3 { // compiled and planned statements are those that have run before
		for zone, want := range zones {
			c := sessions[zone]
			for _, q := range []string{"SELECT ts FROM test.t WHERE id = %s", "SELECT ts FROM test.t WHERE id >= %s ORDER BY id LIMIT 1", "SELECT x.ts FROM test.t x JOIN test.t y ON x.ts = y.ts WHERE x.id + 0 = %s"} {
				checkTime(t, c, zone, want, fmt.Sprintf(q, "1"))
				checkTime(t, c, zone, want, fmt.Sprintf(q, "?"), 1)
			}
			_, err := c.ExecContext(t.Context(), "UPDATE test.t SET v = v + 1 WHERE id = 1")
			must(t, err)
			_, err = c.ExecContext(t.Context(), "REPLACE INTO test.t VALUES (1, ?, 0)", want)
			must(t, err)
		}
	}
	_, err = sessions["+00:00"].ExecContext(t.Context(), "SET time_zone = '+05:30'")
	must(t, err)
	checkTime(t, sessions["+00:00"], "another", zones["+05:30"], "SELECT ts FROM test.t WHERE id = 1")
}

func checkTime(t *testing.T, c *stdsql.Conn, zone, want, query string, args ...any) {
	t.Helper()
	var got string
	must(t, c.QueryRowContext(context.WithoutCancel(t.Context()), query, args...).Scan(&got))
	if got != want {
		t.Errorf("zone %s: %s: %s, want %s", zone, query, got, want)
	}
}
