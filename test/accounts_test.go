package test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"testing"
	"time"
)

// errDenied is MySQL's error number for a refused login, and errNoPrivilege for a missing privilege
// on a table.
const (
	errDenied      = 1045
	errNoPrivilege = 1142
)

// login connects to a machine as a user, once.
func (m *machine) login(ctx context.Context, user, password string) (*stdsql.Conn, error) {
	db, err := stdsql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/", user, password, m.address()))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = db.Close() })
	return db.Conn(ctx)
}

// TestAccountsOfACluster makes, changes and drops accounts on alternating machines of a cluster. In
// between it kills one machine and restarts another. The accounts are the same everywhere: at once
// for new logins, and within a lease for existing connections (a second here, at most).
func TestAccountsOfACluster(t *testing.T) {
	f := filled(t, 3, 3)
	password := "" // root's
	as := func(m *machine, statements ...string) {
		t.Helper()
		c, err := m.login(t.Context(), "root", password)
		if err != nil {
			t.Fatalf("root at machine %d: %v", m.id, err)
		}
		defer c.Close()
		for _, s := range statements {
			for err = error(nil); ; {
				if _, err = c.ExecContext(t.Context(), s); !isConflict(err) {
					break
				}
			}
			if err != nil {
				t.Fatalf("machine %d: %s: %v", m.id, s, err)
			}
		}
	}
	everywhere := func(what, user, password string, number uint16) {
		t.Helper()
		for _, m := range f.machines {
			if !m.serves() {
				continue
			}
			c, err := m.login(t.Context(), user, password)
			if err == nil {
				_ = c.Close()
			}
			if numberOf(err) != number || number == 0 && err != nil {
				t.Errorf("%s, machine %d: %v, want error %d", what, m.id, err, number)
			}
		}
	}
	a, b, c := f.machines[0], f.machines[1], f.machines[2]
	everywhere("nobody has made u", "u", "", errDenied)
	as(a, "create user u identified by 'one'", "grant select on kept.* to u")
	everywhere("u", "u", "one", 0)
	as(b, "alter user u identified by 'two'")
	everywhere("u's old password", "u", "one", errDenied)
	everywhere("u's new password", "u", "two", 0)
	u, err := c.login(t.Context(), "u", "two")
	if err != nil {
		t.Fatal(err)
	}
	change := func() uint16 {
		_, err := u.ExecContext(t.Context(), "insert into kept.t values (2, 2) on duplicate key update n = n + 1")
		return numberOf(err)
	}
	if n := change(); n != errNoPrivilege {
		t.Errorf("u may change what he may only read: error %d", n)
	}
	for _, to := range []struct {
		at        *machine
		statement string
		number    uint16
	}{{a, "grant insert, update on kept.t to u", 0}, {b, "revoke insert on kept.t from u", errNoPrivilege}} {
		as(to.at, to.statement)
		begin := time.Now()
		f.wait(to.statement+", for who is logged in", func() bool { return change() == to.number })
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s took %v", to.statement, took)
		}
	}
	b.kill()
	f.wait("the others to go on", func() bool { return !f.isMember(b) })
	password = "secret"
	if root, err := a.login(t.Context(), "root", ""); err != nil {
		t.Fatal(err)
	} else if _, err := root.ExecContext(t.Context(), "alter user root@localhost identified by 'secret'"); err != nil {
		t.Fatal(err)
	}
	as(c, "create user v", "create role r", "grant select on kept.* to r", "grant r to v", "rename user u to w")
	b.start()
	f.awaitServing()
	everywhere("root without a password", "root", "", errDenied)
	everywhere("v, made while machine 1 was away", "v", "", 0)
	everywhere("u, renamed meanwhile", "u", "two", errDenied)
	everywhere("w, who was u", "w", "two", 0)
	as(b, "drop user v", "drop user w")
	everywhere("v, who was dropped", "v", "", errDenied)
	everywhere("w, who was dropped", "w", "two", errDenied)
	f.killAll()
	for _, m := range f.machines {
		m.start()
	}
	f.awaitServing()
	everywhere("root without a password, after all were killed", "root", "", errDenied)
	everywhere("root with it", "root", password, 0)
	everywhere("v, after all were killed", "v", "", errDenied)
}
