package test

import (
	stdsql "database/sql"
	"strings"
	"testing"
)

// TestTooEarly: a machine that waits for the others does not keep its clients waiting. After a
// while it tells them what it waits for, and also reports it in the log and in the status. Later
// the same address serves them.
func TestTooEarly(t *testing.T) {
	f := filled(t, 3, 3)
	f.killAll()
	m := f.machines[0]
	m.more = append(m.more, "--unavailable-after", "200ms")
	before := m.lineCount()
	m.start()
	var refused event
	f.wait("the log to say that clients are refused", func() (isLogged bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, e := range m.events {
			if e.Message == "not open yet: clients are refused" {
				refused, isLogged = e, true
			}
		}
		return isLogged
	})
	db, err := stdsql.Open("mysql", "root@tcp("+refused.Address+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	quick(t, "a connection", func() {
		if err := db.PingContext(t.Context()); numberOf(err) != errUnavailable || !strings.Contains(err.Error(), "this machine is starting") {
			t.Errorf("connecting: %v", err)
		}
	})
	if n := m.countSince(before, "missing are 1 2"); n != 1 {
		t.Errorf("the log says %d times what is missing", n)
	}
	out, code := f.farmsql("", "status")
	if code != 1 || !strings.Contains(out, "starting: machine 0 waits for a majority of the machines; missing are 1 2") || strings.Contains(out, "NOT AVAILABLE") {
		t.Errorf("status ends with %d:\n%s", code, out)
	}
	for _, other := range f.machines[1:] {
		other.start()
	}
	f.awaitServing()
	if a := m.address(); a != refused.Address {
		t.Errorf("serves at %s, not %s", a, refused.Address)
	}
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}
