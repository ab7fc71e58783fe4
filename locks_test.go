package farmsql

import (
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// A lock taken by GET_LOCK keeps out every other session, also one of another machine of the
// process, until its own session has ended.
func TestUserLocks(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Machines = 2
	db := mustOpen(t, cfg)
	conn := func() *stdsql.Conn {
		c, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	lock := func(c *stdsql.Conn, query string) (got int) {
		t.Helper()
		if err := c.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	owner := conn()
	if lock(owner, "SELECT GET_LOCK('x', 0)") != 1 {
		t.Fatal("nobody has the lock, but it is not free")
	}
	others := []*stdsql.Conn{conn(), conn(), conn()}
	for i, c := range others {
		if lock(c, "SELECT GET_LOCK('x', 0)") != 0 {
			t.Errorf("session %d has the lock as well", i)
		}
	}
	// database/sql closes a connection that it is told is bad.
	if err := owner.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
		t.Fatal(err)
	}
	if lock(others[0], "SELECT GET_LOCK('x', 60)") != 1 {
		t.Error("the session is gone, the lock is not free")
	}
}
